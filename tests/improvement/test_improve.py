"""Corrections of networks trained by plain PyTorch: what is chosen, how it is judged, and what it gives."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import equipoise
from equipoise.core import EquipoiseError
from equipoise.improvement import CorrectedLogits, improve
from equipoise.norms import GhostBatchNorm2d, example_weight


def balanced_accuracy(logits, labels):
    pred, labels = logits.argmax(1).numpy(), labels.numpy()
    return np.mean([(pred[labels == c] == c).mean() for c in np.unique(labels)])


def same_logits(a, b):
    """Up to what softmax does not see."""
    torch.testing.assert_close(a.log_softmax(1), b.log_softmax(1).to(a), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("known_counts", [True, False], ids=["counts", "no counts"])
def test_long_tailed_digits_gain_and_the_network_given_stays(trained, held_out, digits, known_counts):
    before = copy.deepcopy(trained.state_dict())
    found = improve(trained, held_out, class_counts=digits.counts if known_counts else None)
    assert found.helped and found.sentence.startswith(("Logit adjustment", "Example weighing", "Tau-norm"))
    score = found.scores["balanced_accuracy"]
    assert score.difference.low > 0
    assert score.before.low <= score.before.value <= score.before.high
    with torch.no_grad():
        logits = found.network(digits.test_x)
        assert balanced_accuracy(logits, digits.test_y) > balanced_accuracy(trained(digits.test_x), digits.test_y)
        with example_weight(trained, found.chosen.alpha):
            same_logits(logits, found.chosen.correction(trained(digits.test_x)))
    assert all(torch.equal(before[name], value) for name, value in trained.state_dict().items())
    assert found.network is not trained and type(trained[1]) is nn.BatchNorm2d


def test_every_combination_is_tried_in_order(trained, held_out, digits):
    names = [c.name for c in improve(trained, held_out, metric="nll", class_counts=digits.counts).candidates]
    after = ["tau-norm", "logit adjustment"]
    expected = ["as it is", "temperature", *(n + end for n in after for end in ("", " + temperature"))]
    weighed = ["example weighing" + ("" if name == "as it is" else f" + {name}") for name in expected]
    assert names in (expected, expected + weighed)  # no weight may be better than none


def test_the_judged_labels_do_not_change_what_is_chosen(trained, held_out, digits):
    chosen_on, judged_on = held_out[:3], held_out[3:]
    shuffled = [(x, y[torch.randperm(len(y))]) for x, y in judged_on]
    honest, nonsense = (improve(trained, chosen_on, report_on=others) for others in (judged_on, shuffled))
    assert honest.chosen.steps == nonsense.chosen.steps
    assert torch.equal(honest.chosen.correction.offset, nonsense.chosen.correction.offset)
    assert [c.scores for c in honest.candidates] == [c.scores for c in nonsense.candidates]
    assert honest.scores != nonsense.scores


def test_the_halves_share_no_sample_and_no_class_is_missing(digits):
    from equipoise.improvement.halves import halves

    chosen, judged = halves(digits.test_y, 10, seed=0)
    assert sorted([*chosen.tolist(), *judged.tolist()]) == list(range(len(digits.test_y)))
    counts = [digits.test_y[rows].bincount(minlength=10) for rows in (chosen, judged)]
    assert (counts[0] - counts[1]).abs().max() <= 1
    assert not torch.equal(halves(digits.test_y, 10, seed=1)[0], chosen)


def test_nothing_helps_a_network_that_is_right(digits):
    class Knows(nn.Module):
        """Gives the class that the one pixel shows."""

        def forward(self, x):
            return 5 * nn.functional.one_hot(x.flatten().long(), 3).float()

    y = torch.arange(3).repeat(20)
    network = Knows()
    found = improve(network, [(y[:, None, None, None].float(), y)])
    assert found.sentence.startswith("Nothing helped: on the half to choose on, no correction")
    assert not found.helped and found.chosen is None and found.network is network
    assert found.left_out == (
        "Example weighing was left out: the network has no norm with moving averages.",
        "Tau-norm was left out: the last layer of the network is not linear.",
    )


def test_a_gain_by_chance_is_not_believed():
    """Labels that have nothing to do with the inputs: something is best on one half, and worth nothing on the other."""
    torch.manual_seed(1)
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    data = [(torch.randn(120, 4), torch.randint(3, (120,)))]
    found = improve(network, data)
    assert not found.helped and found.sentence.startswith("Nothing helped: ")
    if found.chosen is not None:
        assert "on the other half" in found.sentence
        assert found.scores["balanced_accuracy"].difference.low <= 0


def test_without_norms_example_weighing_is_left_out_with_a_sentence(trained_without_norm, held_out):
    found = improve(trained_without_norm, held_out)
    assert found.left_out == ("Example weighing was left out: the network has no norm with moving averages.",)
    assert not any("example" in c.name for c in found.candidates)


def test_our_norms_are_weighed_too(digits, held_out):
    from .conftest import small_network, train

    torch.manual_seed(0)
    network = train(small_network(lambda c: GhostBatchNorm2d(c, ghost_size=16)), digits.x, digits.y, epochs=4)
    found = improve(network, held_out, metric="nll")
    assert found.helped
    assert network[1].example_weight == network[1].own_example_weight
    with torch.no_grad(), example_weight(network, found.chosen.alpha):
        expected = found.chosen.correction(network(digits.test_x))
    with torch.no_grad():
        same_logits(found.network(digits.test_x), expected)


def test_a_head_without_a_bias_is_corrected_around_the_network(held_out, digits, trained):
    network = copy.deepcopy(trained)
    network[-1].bias = None
    found = improve(network, held_out, class_counts=digits.counts)
    assert isinstance(found.network, CorrectedLogits) and not found.network.training
    with torch.no_grad(), example_weight(network, found.chosen.alpha):
        expected = found.chosen.correction(network(digits.test_x))
    with torch.no_grad():
        same_logits(found.network(digits.test_x), expected)


def test_a_network_may_be_its_last_layer():
    torch.manual_seed(0)
    network, x = nn.Linear(3, 3), torch.randn(90, 3)
    found = improve(network, [(x, network(x).argmax(1).roll(1) % 3)])
    assert found.head == "" and not any("Tau-norm" in sentence for sentence in found.left_out)


def test_few_samples_of_a_class_are_told(trained, digits):
    assert not improve(trained, [(digits.test_x, digits.test_y)]).sparse_classes
    rows = (digits.test_y > 1).nonzero().flatten().tolist() + (digits.test_y == 1).nonzero().flatten()[:4].tolist()
    found = improve(trained, [(digits.test_x[rows], digits.test_y[rows])])  # none of class 0, two judged of class 1
    assert found.sparse_classes == 2
    assert any(note.startswith("2 classes have fewer than 5 samples") for note in found.notes)


def test_a_prior_is_what_the_numbers_are_about(trained, held_out, digits):
    prior = np.array([0.0] * 5 + [0.1, 0.1, 0.2, 0.3, 0.3])
    found = improve(trained, held_out, prior=prior.tolist(), class_counts=digits.counts)
    assert found.metric == "accuracy" and found.helped
    with torch.no_grad():
        pred = found.network(digits.test_x).argmax(1).numpy()
    y = digits.test_y.numpy()
    everywhere = sum(share * (pred[y == c] == c).mean() for c, share in enumerate(prior))
    assert found.scores["accuracy"].after.value == pytest.approx(everywhere, abs=0.03)  # one half of the same data


def test_the_prior_is_estimated_from_unlabelled_inputs(trained, held_out, digits):
    rows = torch.cat([(digits.test_y == c).nonzero().flatten()[: 2 + 5 * c] for c in range(10)])
    truth = digits.test_y[rows].bincount(minlength=10) / len(rows)
    found = improve(trained, held_out, unlabelled=digits.test_x[rows].split(50))
    assert np.abs(np.array(found.prior) - truth.numpy()).sum() <= 0.1
    assert any("estimated from the data without labels" in note for note in found.notes)


def test_a_loader_and_a_generator_give_what_a_list_gives(trained_without_norm, digits, held_out):
    loader = DataLoader(TensorDataset(digits.test_x, digits.test_y), batch_size=64)
    results = [improve(trained_without_norm, data) for data in (held_out, loader, (batch for batch in held_out))]
    assert len({str(found) for found in results}) == 1


def test_a_loader_that_shuffles_is_refused(trained, digits):
    loader = DataLoader(TensorDataset(digits.test_x, digits.test_y), batch_size=64, shuffle=True)
    with pytest.raises(EquipoiseError, match="shuffle=False"):
        improve(trained, loader)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"metric": "auc"}, "no metric is named 'auc'"),
        ({"prior": [1.0, 1.0]}, "for each of 10 classes"),
        ({"prior": [1.0] * 10, "unlabelled": []}, "not both"),
        ({"class_counts": [3, 4]}, "10 numbers"),
        ({"class_names": ["a", "b"]}, "10 classes and the data 2"),
        ({"held_out": []}, "no batch"),
        ({"held_out": "folder"}, "Images"),
        ({"held_out": [torch.zeros(3, 1, 8, 8)]}, "pairs"),
        ({"held_out": [(torch.zeros(3, 1, 8, 8), torch.tensor([0, 1, 10]))]}, "label 10"),
        ({"held_out": [(torch.zeros(3, 2, 8, 8), torch.tensor([0, 1, 1]))]}, "cannot take inputs of shape"),
        ({"held_out": [(torch.zeros(3, 1, 8, 8), torch.tensor([0, 1, 2]))]}, "two held-out samples"),
        ({"held_out": [(torch.full((3, 1, 8, 8), torch.nan), torch.tensor([0, 1, 2]))]}, "not finite"),
    ],
)
def test_mistakes_are_told(trained, held_out, wrong, message):
    with pytest.raises(EquipoiseError, match=message):
        improve(trained, **{"held_out": held_out[:1], **wrong})


def test_an_output_that_is_no_row_of_logits_is_told(held_out):
    class Pair(nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(EquipoiseError, match="gives tuple"):
        improve(Pair(), held_out)


def test_it_is_shown_in_eighty_columns_and_in_a_notebook(trained, held_out, digits):
    found = equipoise.improve(trained, held_out, class_counts=digits.counts, class_names=list("abcdefghij"))
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 80
    table = lines[next(i for i, line in enumerate(lines) if line.split()[:1] == ["before"]) :][:5]
    assert len({len(line) for line in table}) == 1  # columns end together
    page = found._repr_html_()
    assert page.count("<table>") == 2 and "balanced accuracy %" in page
    assert found.plain()["class_names"] == tuple("abcdefghij")


def test_the_mode_of_the_network_stays(trained, held_out):
    network = copy.deepcopy(trained).train()
    network[1].eval()
    improve(network, held_out)
    assert network.training and not network[1].training
