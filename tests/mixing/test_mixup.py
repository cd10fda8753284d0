import numpy as np
import pytest
import torch

from equipoise.core import Spec
from equipoise.mixing import Mixup


def test_images_and_labels_are_shared_alike():
    torch.manual_seed(1)
    x, target = torch.randn(7, 3, 4, 4), torch.arange(7)
    mixed = Mixup(alpha=1.0)(x, target)
    lam, partner = mixed.lam.double().numpy(), mixed.partner.tolist()
    assert sorted(partner) == list(range(7))
    for i in range(7):
        expected = lam[i] * x[i].double().numpy() + (1 - lam[i]) * x[partner[i]].double().numpy()
        np.testing.assert_allclose(mixed.inputs[i], expected, atol=1e-6)
    assert torch.equal(mixed.label_lam, mixed.lam)


def test_number_by_hand():
    # lam = 0.25 of 8 and 0.75 of 4 is 5; the other way round 7
    mix = Mixup()
    plan = mix.plan(torch.tensor([0, 1]))._replace(partner=torch.tensor([1, 0]), lam=torch.tensor([0.25, 0.75]))
    assert mix.blend(torch.tensor([[8.0], [4.0]]), plan).tolist() == [[5.0], [5.0]]
    assert mix.blend(torch.tensor([[8.0], [0.0]]), plan).tolist() == [[2.0], [2.0]]


def test_every_sample_has_its_own_lam():
    assert len(Mixup().plan(torch.zeros(1000, dtype=torch.long)).lam.unique()) > 990


def test_one_lam_for_the_batch():
    target = torch.zeros(50, dtype=torch.long)
    plan = Mixup(alpha=1.0, per_batch=True).plan(target)
    assert plan.lam.shape == plan.label_lam.shape == (50,) and len(plan.lam.unique()) == 1
    draws = np.array([float(Mixup(alpha=2.0, per_batch=True).plan(target).lam[0]) for _ in range(2000)])
    # Beta(2, 2) has mean 1/2 and variance 1/20; five standard errors
    assert abs(draws.mean() - 0.5) < 0.025 and abs(draws.var() - 0.05) < 0.006
    x = torch.arange(100.0).view(50, 2)
    mixed = Mixup(per_batch=True)(x, target)
    share = float(mixed.lam[0])
    np.testing.assert_allclose(mixed.inputs, share * x + (1 - share) * x[mixed.partner], rtol=1e-5)


def test_weights_of_feature_weakening():
    counts, target = [1000, 100, 10], torch.arange(3).repeat(4000)
    mean, spread = np.exp(np.mean(np.log(counts))), np.exp(np.std(np.log(counts)))
    most = 0.5 / (1 + np.exp(-(np.array(counts) - mean) / (2 * spread)))
    plan = Mixup(alpha=1.0, beta=2.0, class_counts=counts).plan(target)
    assert torch.equal(plan.label_lam, plan.lam)
    theirs = 1 - plan.lam.double().view(-1, 3).numpy()
    # uniform from 0 to s(N): of 4,000 the largest is near s, and the mean half of it
    np.testing.assert_allclose(theirs.max(0), most, atol=2e-3)
    np.testing.assert_allclose(theirs.mean(0), most / 2, atol=0.015)


def test_weights_need_the_sizes_of_classes():
    with pytest.raises(ValueError, match="class_counts"):
        Mixup(beta=2.0)
    with pytest.raises(ValueError, match="beta"):
        Mixup(beta=0.0, class_counts=[2, 1])


def test_extreme_alpha():
    target = torch.zeros(1000, dtype=torch.long)
    near_ends = Mixup(alpha=1e-4).plan(target).lam
    assert float(torch.minimum(near_ends, 1 - near_ends).mean()) < 1e-3
    assert float((Mixup(alpha=1e6).plan(target).lam - 0.5).abs().max()) < 0.01


def test_text_and_repr():
    mix = Spec.parse("mixup(alpha=2)").build("mix")
    assert repr(mix) == "Mixup(alpha=2.0, per_batch=False, beta=None)" and mix.site == "input"
