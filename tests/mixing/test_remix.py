import numpy as np
import pytest
import torch

from equipoise.core import Spec
from equipoise.mixing import Remix


def label_share(n_own, n_other, lam, kappa, tau):
    """The rule of the paper for one pair."""
    if n_own / n_other >= kappa and lam < tau:
        return 0.0
    if n_own / n_other <= 1 / kappa and 1 - lam < tau:
        return 1.0
    return lam


@pytest.mark.parametrize(("kappa", "tau"), [(3.0, 0.5), (1.0, 0.3), (50.0, 0.9), (3.0, 0.0)])
def test_labels_follow_the_rule_pair_by_pair(kappa, tau):
    counts = [900, 300, 299, 10, 1]
    target = torch.arange(5).repeat(200)
    mixed = Remix(counts, kappa=kappa, tau=tau)(torch.randn(1000, 2), target)
    other = target[mixed.partner]
    for own, theirs, lam, share in zip(target, other, mixed.lam, mixed.label_lam, strict=True):
        assert float(share) == label_share(counts[own], counts[theirs], float(lam), kappa, tau)
    if tau == 0.5:
        assert {0.0, 1.0} < set(mixed.label_lam.tolist())


def test_images_are_mixed_as_in_mixup():
    x, target = torch.randn(6, 2, 3), torch.tensor([0, 1, 0, 1, 0, 1])
    mixed = Remix([100, 1])(x, target)
    lam = mixed.lam.double().numpy()[:, None, None]
    expected = lam * x.double().numpy() + (1 - lam) * x[mixed.partner].double().numpy()
    np.testing.assert_allclose(mixed.inputs, expected, atol=1e-6)


def test_number_by_hand():
    # 90 against 10 images and lam 0.4: uneven by 9 ≥ 3, the frequent class has less than half: the rare label takes all
    assert label_share(90, 10, 0.4, 3.0, 0.5) == 0.0
    assert label_share(10, 90, 0.6, 3.0, 0.5) == 1.0
    assert label_share(90, 10, 0.6, 3.0, 0.5) == 0.6


def test_tau_zero_is_mixup():
    mixed = Remix([100, 1], tau=0.0)(torch.randn(50, 2), torch.arange(50) % 2)
    assert torch.equal(mixed.label_lam, mixed.lam)


def test_an_empty_class_is_no_error():
    mixed = Remix([100, 0, 1])(torch.randn(6, 2), torch.tensor([0, 2, 0, 2, 0, 2]))
    assert bool(torch.isfinite(mixed.label_lam).all())


def test_text_and_errors():
    mix = Spec.parse("remix(kappa=2)").build("mix", class_counts=torch.tensor([3, 1]))
    assert repr(mix) == "Remix(class_counts=[3, 1], alpha=1.0, kappa=2.0, tau=0.5, beta=None)"
    with pytest.raises(ValueError, match="kappa must be at least 1"):
        Remix([3, 1], kappa=0.5)
    with pytest.raises(ValueError, match="tau must lie between 0 and 1"):
        Remix([3, 1], tau=1.5)


def test_weights_of_feature_weakening_keep_the_rule_of_labels():
    counts, target = [1000, 100, 10], torch.arange(3).repeat(300)  # s is 0.5, 0.25 and 0.0005
    mixed = Remix(counts, beta=2.0)(torch.randn(900, 2), target)
    assert float(mixed.lam.min()) >= 0.5  # a partner has half of an image at most
    for own, theirs, lam, share in zip(target, target[mixed.partner], mixed.lam, mixed.label_lam, strict=True):
        assert float(share) == label_share(counts[own], counts[theirs], float(lam), 3.0, 0.5)
    rare = mixed.target == 2
    assert bool((mixed.lam[rare] > 0.999).all()) and float(mixed.lam[mixed.target == 0].mean()) < 0.8
