"""Wrong labels are found in rare classes as in frequent ones, and right ones are let be."""

import numpy as np
import pytest
import torch

from equipoise.auditing.labels import FEWEST, _discriminant, _folds, judge, pixel_features

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def features(digits, picture):
    small = [np.asarray(picture(row).resize((24, 24)).convert("RGB")) for row in range(len(digits[1]))]
    return pixel_features(np.stack(small))


def long_tailed(target, seed, largest=150, ratio=10):
    rng = np.random.default_rng(seed)
    sizes = [round(largest * ratio ** (-c / 9)) for c in range(10)]
    rows = [rng.permutation(np.flatnonzero(target == c))[:n] for c, n in enumerate(sizes)]
    true = np.repeat(np.arange(10), sizes)
    given = true.copy()
    for c, n in enumerate(sizes):
        wrong = rng.permutation(np.flatnonzero(true == c))[: max(1, round(n / 10))]
        given[wrong] = (c + rng.integers(1, 10, len(wrong))) % 10
    return np.concatenate(rows), true, given


def test_recall_in_rare_classes_is_that_of_frequent_ones(digits, features):
    """10 % wrong labels, classes of 150 to 15 images: in the tail at least 0.8 of the recall in the head."""
    wrong_head, wrong_tail, right = [], [], []
    for seed in range(8):
        rows, true, given = long_tailed(digits[1], seed)
        found = judge(features[rows], torch.from_numpy(given), 10, np.arange(len(given)))
        flagged = np.zeros(len(given), bool)
        flagged[[s.image for s in found.suspects]] = True
        wrong = true != given
        wrong_head += flagged[wrong & (true < 4)].tolist()
        wrong_tail += flagged[wrong & (true > 5)].tolist()
        right += [flagged[~wrong & (given < 4)].mean(), flagged[~wrong & (given > 5)].mean()]
        surest = [s.image for s in found.suspects[:20]]
        assert wrong[surest].mean() >= 0.9, "the surest first"
    head, tail = np.mean(wrong_head), np.mean(wrong_tail)
    assert head > 0.85 and tail >= 0.8 * head
    assert max(np.mean(right[::2]), np.mean(right[1::2])) < 0.04, "rare classes are not flagged for being rare"


def test_features_that_tell_nothing_doubt_nothing():
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(200) % 4
    found = judge(torch.randn(200, 10, generator=rng), labels, 4, np.arange(200))
    assert not found.means_something and found.accuracy < 0.45


def test_tiny_classes_are_not_judged():
    rng = torch.Generator().manual_seed(0)
    labels = torch.tensor([0] * 40 + [1] * 40 + [2] * (FEWEST - 1))
    x = torch.nn.functional.one_hot(labels, 3).float() * 9 + torch.randn(len(labels), 3, generator=rng)
    x[-1] = x[0]  # an image of class 0 with the label of class 2
    found = judge(x, labels, 3, np.arange(len(labels)))
    assert found.means_something and not [s for s in found.suspects if s.image >= 80]


def test_the_discriminant_by_its_formula():
    """Against densities written out in numpy: log N(x; mean, covariance) up to what all classes share."""
    rng = np.random.default_rng(0)
    x, y, new = rng.normal(size=(30, 3)), np.arange(30) % 3, rng.normal(size=(5, 3))
    x += y[:, None]
    means = np.stack([x[y == c].mean(0) for c in range(3)])
    spread = sum(np.outer(a - means[c], a - means[c]) for a, c in zip(x, y, strict=True)) / 27
    spread = 0.8 * spread + 0.2 * np.trace(spread) / 3 * np.eye(3)
    expected = np.array([[-0.5 * (a - m) @ np.linalg.inv(spread) @ (a - m) for m in means] for a in new])
    logits = _discriminant(*map(torch.from_numpy, (x, y, new)), 3).numpy()
    np.testing.assert_allclose(logits - logits[:, :1], expected - expected[:, :1], rtol=1e-6, atol=1e-8)


def test_copies_share_a_fold_and_classes_are_spread():
    labels, together = np.repeat([0, 1], 50), np.arange(100) // 2
    folds = _folds(labels, together)
    assert (folds[::2] == folds[1::2]).all()
    assert [np.bincount(folds[labels == c]).tolist() for c in (0, 1)] == [[10] * 5] * 2
