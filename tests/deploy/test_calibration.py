"""Temperature and prior against a reference in plain loops, and on data whose truth is known."""

import math

import pytest
import torch

from equipoise.deploy import Calibration

COUNTS = torch.tensor([900, 90, 10])


def reference(z, counts, prior, temperature, removed):
    """p(y | x) at the training frequencies, then p · q / π, renormalised."""
    total, rows = sum(counts), []
    for row in z:
        weights = [
            math.exp(value / temperature) * (count / total) ** removed * q / (count / total)
            for value, count, q in zip(row, counts, prior, strict=True)
        ]
        rows.append([weight / sum(weights) for weight in weights])
    return rows


@pytest.mark.parametrize("prior", [[0.2, 0.3, 0.5], [1.0, 0.0, 1.0]])
def test_a_prior_by_hand(prior):
    z = torch.randn(5, 3, dtype=torch.float64)
    got = Calibration(1.7, 0.4).probabilities(z, COUNTS, torch.tensor(prior))
    wanted = reference(z.tolist(), COUNTS.tolist(), [p / sum(prior) for p in prior], 1.7, 0.4)
    torch.testing.assert_close(got, torch.tensor(wanted, dtype=torch.float64))


def test_without_a_prior_it_is_the_softmax():
    z = torch.randn(5, 3)
    torch.testing.assert_close(Calibration(2.0, 0.5, 9).probabilities(z, COUNTS), (z / 2).softmax(1))


def test_the_training_prior_gives_back_plain_training():
    z = torch.randn(5, 3, dtype=torch.float64)
    got = Calibration(1.0, 0.0).probabilities(z, COUNTS, COUNTS.double())
    torch.testing.assert_close(got, z.softmax(1))


@pytest.mark.parametrize("removed", [0.0, 1.0])
@pytest.mark.parametrize("held_out", [[900, 90, 10], [1, 1, 1]])
def test_what_was_done_to_the_logits_is_found(removed, held_out):
    """Logits of a network that knows the truth, less part of the prior, times 2; validation images as they may come."""
    generator = torch.Generator().manual_seed(0)
    log_likelihood = 2 * torch.randn(20_000, 3, dtype=torch.float64, generator=generator)
    training = (COUNTS / COUNTS.sum()).double().log()
    shares = torch.tensor(held_out, dtype=torch.float64)
    # images whose labels are drawn from the posterior at the validation frequencies
    posterior = (log_likelihood + (shares / shares.sum()).log()).softmax(1)
    target = torch.multinomial(posterior, 1, generator=generator).flatten()
    # which of them a class gets must match the prior: of these posteriors the mean is not quite the prior
    seen = torch.bincount(target, minlength=3).double()
    log_likelihood = log_likelihood + (shares / shares.sum()).log() - (seen / seen.sum()).log()
    found = Calibration.fit(2 * (log_likelihood + (1 - removed) * training), target, COUNTS)
    assert found.removed == pytest.approx(removed, abs=0.11) and found.temperature == pytest.approx(2, rel=0.1)
    assert found.images == 20_000


def test_a_few_images_that_are_all_right_do_not_make_it_certain():
    logits = torch.tensor([[4.0, 0.0], [0.0, 4.0], [3.0, 0.0]])
    found = Calibration.fit(logits, torch.tensor([0, 1, 0]), torch.tensor([5, 5]))
    assert found.probabilities(logits, torch.tensor([5, 5])).max() < 0.99


def test_no_validation_images_no_calibration():
    assert Calibration.fit(torch.empty(0, 3), torch.empty(0, dtype=torch.long), COUNTS) == Calibration()


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"removed": 1.5}, {"images": -1}])
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError):
        Calibration(**wrong)
