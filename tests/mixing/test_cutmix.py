import pytest
import torch
from torch import nn

from equipoise.core import Spec
from equipoise.mixing import CutMix
from equipoise.mixing._base import beta_sample, random_partner
from equipoise.mixing.cutmix import kept_pixels


def test_every_pixel_is_from_the_image_or_its_partner_and_labels_share_by_area():
    torch.manual_seed(1)
    n, h, w = 64, 9, 6
    x = torch.arange(n, dtype=torch.float32).view(n, 1, 1, 1).expand(n, 3, h, w)
    mixed = CutMix()(x, torch.zeros(n, dtype=torch.long))
    for i in range(n):
        partner, image = int(mixed.partner[i]), mixed.inputs[i]
        assert set(image.flatten().tolist()) <= {float(i), float(partner)}
        if partner == i:
            continue
        cut = image[0] != i
        assert torch.equal(cut, image[1] != i) and torch.equal(cut, image[2] != i)
        kept = 1 - int(cut.sum()) / (h * w)
        assert float(mixed.lam[i]) == pytest.approx(kept, abs=1e-6)
        rows, columns = cut.any(1), cut.any(0)
        assert torch.equal(cut, rows[:, None] & columns)  # one box
        for line in (rows, columns):  # without gaps
            places = line.nonzero().flatten()
            assert not len(places) or int(places[-1] - places[0]) + 1 == len(places)
    assert torch.equal(mixed.label_lam, mixed.lam)
    assert len(mixed.lam.unique()) > 10


def test_boxes_have_the_size_of_the_paper():
    # b = 0.75: sides sqrt(0.25) = 1/2 of 16 and 8, so 8 x 4 = 32 of 128 pixels where the border does not cut
    keep = kept_pixels(torch.full((5000,), 0.75), 16, 8)
    cut = (~keep).sum((1, 2))
    assert int(cut.max()) == 32 and int(cut.min()) >= 4 * 2  # a corner keeps a quarter
    uncut = (~keep[:, 0]).sum(1).eq(0) & (~keep[:, -1]).sum(1).eq(0)
    assert bool((uncut & cut.eq(32)).any())
    # rows and columns are drawn apart: whether the first of each is cut has nothing to do with the other
    top, left = (~keep[:, 0]).any(1).double(), (~keep[:, :, 0]).any(1).double()
    assert abs(float(torch.corrcoef(torch.stack([top, left]))[0, 1])) < 0.05
    # each pixel is a centre as often as any other: rows are cut as often as the number of centres that reach them says
    reach = [sum(c - 4 <= row < c + 4 for c in range(16)) / 16 for row in range(16)]
    torch.testing.assert_close((~keep).any(2).double().mean(0), torch.tensor(reach).double(), atol=0.03, rtol=0)


@pytest.mark.parametrize(("b", "cut"), [(1.0, 0), (0.0, 10 * 10)])
def test_nothing_and_everything(b, cut):
    keep = kept_pixels(torch.full((200,), b), 10, 10)
    assert int((~keep).sum((1, 2)).max()) == cut


def test_mean_share_is_that_of_clipped_boxes():
    # uniform b and centre: of a side r = sqrt(1 - b) the border leaves r - r²/4 on average, so the mean cut area is
    # that of (r - r²/4)², the integral of 2 r (r - r²/4)² from 0 to 1: 2 (1/4 - 1/10 + 1/96) = 0.3208
    keep = kept_pixels(torch.rand(2000), 100, 100)
    assert float((~keep).sum()) / keep.numel() == pytest.approx(0.3208, abs=0.02)


def test_a_share_of_the_images_is_cut():
    x = torch.arange(4000, dtype=torch.float32).view(4000, 1, 1, 1).expand(4000, 3, 8, 8)
    mixed = CutMix(share=0.25)(x, torch.zeros(4000, dtype=torch.long))
    whole = (mixed.inputs == x).flatten(1).all(1)
    assert bool((mixed.label_lam[whole] == 1).all()) and bool((mixed.label_lam[~whole] < 1).all())
    # of those cut, boxes of no pixel leave some whole: sides below a quarter, so b > 15/16, and their own partners
    assert float((~whole).double().mean()) == pytest.approx(0.25 * 15 / 16, abs=0.03)
    untouched = CutMix(share=0.0)(x, torch.zeros(4000, dtype=torch.long))
    assert torch.equal(untouched.inputs, x) and bool((untouched.label_lam == 1).all())


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_after_its_stop_no_image_is_cut(share):
    x, target = torch.randn(64, 3, 8, 8), torch.arange(64)
    mix = CutMix(share=share, stop=0.75)
    for progress, cuts in [(0.0, True), (0.74, True), (0.75, False), (1.0, False)]:
        for told in (progress, torch.tensor(progress, dtype=torch.float64)):
            mix.progress = told
            mixed = mix(x, target)
            assert torch.equal(mixed.inputs, x) is not cuts and bool((mixed.label_lam == 1).all()) is not cuts


def test_where_all_are_cut_no_number_more_is_drawn():
    """So that runs recorded before there was a share come out again."""
    x, target = torch.randn(6, 3, 8, 8), torch.arange(6)
    torch.manual_seed(0)
    left, partner = beta_sample(1.0, 6, x.device, None), random_partner(target, None)
    keep = kept_pixels(left, 8, 8)
    torch.manual_seed(0)
    assert torch.equal(CutMix()(x, target).inputs, torch.where(keep[:, None], x, x[partner]))


def test_text_and_errors():
    mix = Spec.parse("cutmix").build("mix")
    assert repr(mix) == "CutMix(alpha=1.0, share=1.0, stop=1.0)" and mix.site == "input"
    with pytest.raises(ValueError, match="share must lie between 0 and 1"):
        CutMix(share=1.5)
    with pytest.raises(ValueError, match="stop must lie between 0 and 1"):
        CutMix(stop=-0.5)
    with pytest.raises(ValueError, match="images of shape"):
        mix(torch.randn(4, 3), torch.zeros(4, dtype=torch.long))
    with pytest.raises(ValueError, match=r"call it on them"), mix.at(nn.Linear(2, 2), torch.tensor([0])):
        pass
