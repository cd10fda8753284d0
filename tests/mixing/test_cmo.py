import pytest
import torch

from equipoise.core import Spec
from equipoise.mixing import ContextRichOversampling, CutMix
from equipoise.mixing.cmo import weighed_partner

COUNTS = [500, 50, 5]


def shares(batch, power):
    """How often each class is drawn, by the formula: P(j) ∝ n^-r over the places of the batch."""
    chances = [COUNTS[y] ** -power for y in batch]
    return [sum(p for p, y in zip(chances, batch, strict=True) if y == c) / sum(chances) for c in range(3)]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_boxes_come_from_classes_as_often_as_the_formula_says(power):
    torch.manual_seed(3)
    batch = [0] * 90 + [1] * 9 + [2]
    target = torch.tensor(batch)
    mix = ContextRichOversampling(COUNTS, power=power)
    drawn = torch.cat([target[mix.partner(target)] for _ in range(200)])
    found = torch.bincount(drawn, minlength=3).double() / len(drawn)
    torch.testing.assert_close(found, torch.tensor(shares(batch, power)).double(), atol=0.015, rtol=0)


def test_number_by_hand():
    # one image of each of 500, 50 and 5: chances 1 : 10 : 100, of 111
    assert shares([0, 1, 2], 1.0) == pytest.approx([1 / 111, 10 / 111, 100 / 111])


def test_each_image_draws_by_itself():
    torch.manual_seed(0)
    partner = weighed_partner(torch.ones(50))
    assert len(partner.unique()) < 50  # with replacement: a permutation would have all
    several = torch.stack([weighed_partner(torch.ones(3)) for _ in range(3000)])
    together = (several[:, 0] == several[:, 1]).double().mean()
    assert float(together) == pytest.approx(1 / 3, abs=0.04)


def test_boxes_and_labels_are_those_of_cutmix():
    torch.manual_seed(2)
    x = torch.arange(64.0).view(64, 1, 1, 1).expand(64, 3, 8, 8)
    target = torch.arange(64) % 3
    mixed = ContextRichOversampling(COUNTS, share=1.0)(x, target)
    kept = (mixed.inputs[:, 0] == torch.arange(64.0).view(64, 1, 1)).double().mean((1, 2))
    other = mixed.partner != torch.arange(64)
    torch.testing.assert_close(kept[other], mixed.label_lam[other].double(), atol=1e-6, rtol=0)
    cut = mixed.inputs != x
    assert torch.equal(mixed.inputs[cut], x[mixed.partner][cut])


def test_half_of_the_images_are_left_whole():
    mixed = ContextRichOversampling(COUNTS)(torch.randn(4000, 1, 8, 8), torch.arange(4000) % 3)
    assert float((mixed.label_lam < 1).double().mean()) == pytest.approx(0.5 * 15 / 16, abs=0.03)


@pytest.mark.parametrize(("counts", "batch"), [([9, 0, 1], [0, 2]), ([9, 0], [0, 0, 0]), ([1], [0])])
def test_empty_classes_small_batches_and_one_class(counts, batch):
    mixed = ContextRichOversampling(counts, share=1.0)(torch.randn(len(batch), 1, 4, 4), torch.tensor(batch))
    assert bool(torch.isfinite(mixed.inputs).all()) and int(mixed.partner.max()) < len(batch)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_images_keep_their_type_and_gradients_reach_the_partner(dtype):
    x = torch.randn(8, 2, 6, 6, dtype=dtype, requires_grad=True)
    mixed = ContextRichOversampling(COUNTS, share=1.0)(x, torch.arange(8) % 3)
    assert mixed.inputs.dtype == dtype
    mixed.inputs.sum().backward()
    kept = (mixed.label_lam * 36).round()
    given = torch.zeros(8).index_add_(0, mixed.partner, 36 - kept)
    assert torch.equal(x.grad[:, 0].float().sum((1, 2)), kept + given)


def test_not_while_evaluating():
    x = torch.randn(4, 1, 4, 4)
    mixed = ContextRichOversampling(COUNTS).eval()(x, torch.tensor([0, 1, 2, 0]))
    assert torch.equal(mixed.inputs, x) and bool((mixed.label_lam == 1).all())


def test_text_and_errors():
    mix = Spec.parse("cmo(power=0.5)").build("mix", class_counts=torch.tensor([3, 1]))
    assert isinstance(mix, CutMix)
    assert repr(mix) == "ContextRichOversampling(class_counts=[3, 1], alpha=1.0, share=0.5, power=0.5, stop=1.0)"
    with pytest.raises(ValueError, match="power must be at least 0"):
        ContextRichOversampling([3, 1], power=-1.0)
    with pytest.raises(ValueError, match="no class has any image"):
        ContextRichOversampling([0, 0])
    with pytest.raises(ValueError, match="ContextRichOversampling expects images of shape"):
        mix(torch.randn(4, 3), torch.zeros(4, dtype=torch.long))
