import numpy as np
import pytest
import torch

from equipoise.losses import BalancedSoftmaxLoss, balanced_softmax_loss

COUNTS = [500, 120, 33, 7, 1]


def test_reference(agrees_with):
    n = np.array(COUNTS)
    agrees_with(BalancedSoftmaxLoss(COUNTS), lambda z, y: np.log((n * np.exp(z)).sum()) - np.log(n[y]) - z[y])


def test_reference_with_an_empty_class(agrees_with):
    n = np.array([5, 0, 3])
    seen = n > 0

    def reference(z, y):
        return np.log((n[seen] * np.exp(z[seen])).sum()) - np.log(n[y]) - z[y]

    agrees_with(BalancedSoftmaxLoss(n), reference, num_classes=3, labels=[0, 2, 2])


def test_by_hand():
    # equal logits: the probability is the share of images, -log(10 / 100) = 2.302585
    value = balanced_softmax_loss(torch.zeros(1, 2), torch.tensor([1]), log_counts=torch.tensor([90, 10]).log())
    assert value.item() == pytest.approx(2.302585, abs=1e-6)


def test_a_label_without_images_has_an_infinite_loss_and_a_finite_gradient():
    logits = torch.zeros(1, 3, requires_grad=True)
    value = BalancedSoftmaxLoss([5, 0, 3])(logits, torch.tensor([1]))
    value.backward()
    assert value.item() == float("inf")
    assert logits.grad.isfinite().all()


def test_a_cast_to_half_precision_keeps_the_counts():
    # 70000 is beyond the largest float16
    logits, target = torch.randn(4, 2), torch.tensor([0, 1, 0, 1])
    loss = BalancedSoftmaxLoss([70000, 3])
    value = loss(logits, target)
    assert torch.equal(loss.half()(logits, target), value)


@pytest.mark.parametrize("counts", [[0, 0], [-1, 2], [0.5, 1], [[1, 2]], []])
def test_refuses(counts):
    with pytest.raises(ValueError, match="class_counts"):
        BalancedSoftmaxLoss(counts)
