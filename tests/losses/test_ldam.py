import numpy as np
import pytest
import torch

from equipoise.losses import LDAMLoss, ldam_loss, ldam_margins

COUNTS = [500, 120, 33, 7, 1]


@pytest.mark.parametrize(("max_margin", "scale"), [(0.5, 30.0), (0.0, 1.0), (1.0, 4.0)])
def test_reference(agrees_with, max_margin, scale):
    margins = np.array(COUNTS) ** -0.25
    margins *= max_margin / margins.max()

    def reference(z, y):
        moved = scale * (z - margins * (np.arange(len(z)) == y))
        return np.log(np.exp(moved - moved.real.max()).sum()) + moved.real.max() - moved[y]

    agrees_with(LDAMLoss(COUNTS, max_margin, scale), reference, spread=0.3)


def test_by_hand():
    # n^(-1/4) = 0.1 and 0.5, so the margins are 0.1 and 0.5; equal cosines: log(1 + e^(4 * 0.5)) = 2.126928
    margins = ldam_margins(torch.tensor([10000, 16]))
    torch.testing.assert_close(margins, torch.tensor([0.1, 0.5], dtype=torch.float64))
    value = ldam_loss(torch.tensor([[0.5, 0.5]]), torch.tensor([1]), scaled_margins=4 * margins, scale=4.0)
    assert value.item() == pytest.approx(2.126928, abs=1e-6)


def test_the_margin_is_subtracted_before_the_scale():
    # 2 * (1 - 0.5) = 1; a known other variant takes scale * margin from unscaled logits: 1 - 2 * 0.5 = 0
    value = LDAMLoss([1, 1], scale=2.0)(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert value.item() == pytest.approx(np.log1p(np.exp(-1.0)), abs=1e-6)


def test_an_empty_class_has_the_margin_of_one_image():
    assert ldam_margins(torch.tensor([0, 1, 16])).tolist() == pytest.approx([0.5, 0.5, 0.25])


def test_does_not_change_the_logits():
    logits = torch.randn(4, 5)
    before = logits.clone()
    LDAMLoss(COUNTS)(logits, torch.arange(4))
    assert torch.equal(logits, before)


def test_link_scales_the_cosines():
    assert LDAMLoss(COUNTS, scale=7.0).link(torch.ones(1, 5)).tolist() == [[7.0] * 5]


@pytest.mark.parametrize("parameters", [{"max_margin": -0.1}, {"scale": 0}, {"scale": True}])
def test_refuses(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        LDAMLoss(COUNTS, **parameters)
