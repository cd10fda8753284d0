"""What all mixings share: the place in the network, the plan, the random numbers, the labels."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from equipoise.mixing import ContextRichOversampling, CutMix, MajorFeatureWeakening, ManifoldMixup, Mixup, Remix
from equipoise.mixing._base import beta_sample

COUNTS = [100, 10, 1]
MIXINGS = [
    MajorFeatureWeakening(COUNTS),
    Mixup(),
    ManifoldMixup(),
    Remix(COUNTS),
    CutMix(),
    CutMix(share=0.5),
    ContextRichOversampling(COUNTS),
    MajorFeatureWeakening(COUNTS, alpha=0.05),
    Mixup(alpha=1e-6),
    Mixup(alpha=1e6),
]
IN_NETWORK = [m for m in MIXINGS if not isinstance(m, CutMix)]


class SmallNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage1 = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.stage1(x).mean((2, 3)))


def batch(n=8):
    return torch.randn(n, 1, 6, 6), torch.arange(n) % 3


@pytest.mark.parametrize("alpha", [0.05, 0.2, 1.0, 5.0, 1e3])
def test_beta_draws_follow_the_distribution(alpha):
    n = 400_000
    draws = beta_sample(alpha, n, torch.device("cpu"), torch.Generator().manual_seed(1)).double().numpy()
    points = np.concatenate([[1e-30, 1e-10, 1e-4], np.linspace(0.01, 0.99, 99), [0.9999]])
    empirical = np.searchsorted(np.sort(draws), points, side="right") / n
    assert np.abs(empirical - stats.beta(alpha, alpha).cdf(points)).max() < 1.95 / np.sqrt(n)  # KS at p = 0.001


@pytest.mark.parametrize("alpha", [1e-30, 1e-3, 1e8])
def test_beta_draws_are_finite_and_inside_for_any_alpha(alpha):
    draws = beta_sample(alpha, 10_000, torch.device("cpu"), None)
    assert bool(((draws >= 0) & (draws <= 1)).all())
    if alpha < 1:  # all at the ends, as many at each
        assert float(draws.round().mean()) == pytest.approx(0.5, abs=0.02)
        assert float(torch.minimum(draws, 1 - draws).mean()) < 1e-2
    else:
        assert float((draws - 0.5).abs().max()) < 1e-3


@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_same_generator_same_mix_another_another(mix):
    x, target = batch()

    def mixed_with(seed):
        mix.generator = torch.Generator().manual_seed(seed)
        return mix(x, target)

    first, again, other = mixed_with(1), mixed_with(1), mixed_with(2)
    mix.generator = None
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.lam, again.lam) and torch.equal(first.partner, again.partner)
    assert not torch.equal(first.partner, other.partner)
    assert not torch.equal(first.lam, other.lam) or mix.alpha in (1e-6, 1e6)


@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_a_generator_of_its_own_leaves_the_global_one_alone(mix):
    x, target = batch()
    mix.generator = torch.Generator().manual_seed(1)
    before = torch.get_rng_state()
    mix(x, target)
    mix.generator = None
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_evaluation_leaves_the_batch_alone(mix):
    x, target = batch()
    mix.eval()
    mixed = mix(x, target)
    mix.train()
    assert mixed.inputs is x
    assert mixed.label_lam.tolist() == [1.0] * len(target)
    assert mixed.batch(mixed.inputs).other is None


@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_a_batch_of_one_stays_what_it_is(mix):
    x, target = batch(1)
    assert torch.equal(mix(x, target).inputs, x)


@pytest.mark.parametrize("mix", IN_NETWORK, ids=repr)
def test_mixing_at_a_stage_mixes_what_that_stage_gives(mix):
    network, (x, target) = SmallNetwork(), batch()
    with mix.at(network.stage1, target) as mixed:
        logits = network(x)
    features = network.stage1(x)  # outside the block: as they were before mixing
    by_hand = network.head(mix.blend(features, mixed.plan).mean((2, 3)))
    torch.testing.assert_close(logits, by_hand)
    assert not torch.allclose(logits, network(x))


@pytest.mark.parametrize("mix", IN_NETWORK, ids=repr)
def test_no_mixing_at_a_stage_in_evaluation_mode(mix):
    network, (x, target) = SmallNetwork().eval(), batch()
    expected = network(x)
    with mix.at(network.stage1, target) as mixed:
        assert torch.equal(network(x), expected)
    assert mixed.label_lam.tolist() == [1.0] * len(target)


@pytest.mark.parametrize("training", [True, False])
def test_the_hook_is_gone_after_the_block_and_after_an_error(training):
    network, (x, target) = SmallNetwork().train(training), batch()
    expected = network(x)
    with Mixup().at(network.stage1, target):
        pass
    assert torch.equal(network(x), expected)
    with pytest.raises(RuntimeError, match="stop"), Mixup().at(network.stage1, target):
        raise RuntimeError("stop")
    assert torch.equal(network(x), expected)
    assert not network.stage1._forward_hooks


@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_the_gradient_reaches_the_partner(mix):
    x, target = batch()
    x.requires_grad_()
    mixed = mix(x, target)
    i = int((mixed.partner != torch.arange(len(target))).nonzero()[0])
    own_share = mixed.lam[i] if mixed.plan.label_lam is not None else 1 - mixed.lam[i]
    (gradient,) = torch.autograd.grad(mixed.inputs[i].sum(), x)
    per_image = gradient.mean((1, 2, 3))
    assert float(per_image[i]) == pytest.approx(float(own_share), abs=1e-6)
    assert float(per_image[mixed.partner[i]]) == pytest.approx(1 - float(own_share), abs=1e-6)


@pytest.mark.parametrize("mix", IN_NETWORK, ids=repr)
def test_gradcheck_of_blend(mix):
    target = torch.tensor([0, 1, 2, 0])
    plan = mix.plan(target)
    x = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: mix.blend(x, plan), (x,))


@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_bfloat16_stays_bfloat16_and_is_right(mix):
    x, target = batch()
    mix.generator = torch.Generator().manual_seed(3)
    exact = mix(x.bfloat16().float(), target).inputs
    mix.generator.manual_seed(3)
    mixed = mix(x.bfloat16(), target)
    mix.generator = None
    assert mixed.inputs.dtype == torch.bfloat16 and mixed.lam.dtype == torch.float32
    torch.testing.assert_close(mixed.inputs.float(), exact, atol=0.05, rtol=0.05)


def test_loss_shares_labels_by_label_lam():
    torch.manual_seed(1)
    logits, (x, target) = torch.randn(8, 3), batch()
    mixed = Mixup()(x, target)
    log_p = (logits - logits.exp().sum(1, keepdim=True).log()).double().numpy()
    own, other = target.numpy(), target[mixed.partner].numpy()
    lam = mixed.label_lam.double().numpy()
    rows = np.arange(8)
    expected = -(lam * log_p[rows, own] + (1 - lam) * log_p[rows, other]).mean()
    value = mixed.loss(nn.CrossEntropyLoss(reduction="none"), logits)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    made = mixed.batch(x)
    assert torch.equal(made.other, target[mixed.partner]) and torch.equal(made.lam, mixed.label_lam)


def test_loss_refuses_a_criterion_that_has_averaged():
    x, target = batch()
    with pytest.raises(ValueError, match='reduction="none"'):
        Mixup()(x, target).loss(nn.CrossEntropyLoss(), torch.randn(8, 3))


def test_a_mixing_that_leaves_labels_alone_takes_any_criterion():
    x, target = batch()
    mixed = MajorFeatureWeakening(COUNTS)(x, target)
    logits = torch.randn(8, 3)
    assert torch.equal(mixed.loss(nn.CrossEntropyLoss(), logits), nn.CrossEntropyLoss()(logits, target))
    assert mixed.batch(x).other is None


@pytest.mark.parametrize(
    "make", [Mixup, ManifoldMixup, CutMix, lambda a: Remix(COUNTS, a), lambda a: ContextRichOversampling(COUNTS, a)]
)
@pytest.mark.parametrize("alpha", [0, -1.0, float("nan"), "1"])
def test_alpha_must_be_positive(make, alpha):
    with pytest.raises(ValueError, match="alpha"):
        make(alpha)


def mixed_with_seed(mix, x, y, seed=3):
    torch.manual_seed(seed)
    return mix(x, y)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.int8, torch.uint8])
@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_labels_of_any_whole_type(mix, dtype):
    """As many samples as classes: PyTorch would take uint8 labels for a mask."""
    x, y = batch(3)
    expected, got = mixed_with_seed(mix, x, y), mixed_with_seed(mix, x, y.to(dtype))
    assert torch.equal(got.inputs, expected.inputs) and torch.equal(got.label_lam, expected.label_lam)
    other, wanted = got.batch(x).other, expected.batch(x).other
    assert (other is None and wanted is None) or other.tolist() == wanted.tolist()


@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_an_empty_batch(mix):
    x = torch.zeros(0, 1, 6, 6, requires_grad=True)
    mixed = mix(x, torch.zeros(0, dtype=torch.long))
    assert mixed.inputs.shape == x.shape and len(mixed.partner) == len(mixed.lam) == len(mixed.label_lam) == 0
    mixed.inputs.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mix", MIXINGS, ids=repr)
def test_the_default_type_changes_no_number(mix, default):
    x, y = batch(9)
    expected = mixed_with_seed(mix, x, y)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(default)
        got = mixed_with_seed(mix, x, y)
        assert mixed_with_seed(mix.eval(), x, y).lam.dtype == torch.float32
    finally:
        torch.set_default_dtype(before)
        mix.train()
    assert got.inputs.dtype == torch.float32 and torch.equal(got.inputs, expected.inputs)
    assert torch.equal(got.lam, expected.lam) and torch.equal(got.label_lam, expected.label_lam)


@pytest.mark.parametrize("default", [torch.float64, torch.bfloat16])
def test_weakening_is_as_exact_as_float32_whatever_the_default_type(default):
    expected, before = MajorFeatureWeakening(COUNTS).weights, torch.get_default_dtype()
    try:
        torch.set_default_dtype(default)
        weights = MajorFeatureWeakening(COUNTS).weights
    finally:
        torch.set_default_dtype(before)
    torch.testing.assert_close(weights.float(), expected)
