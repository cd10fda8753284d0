"""Mutual learning against loops in float64, and what peers have in common and for themselves."""

import copy

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.train import Recipe
from equipoise.train.procedures import divergence


def probabilities(logits) -> np.ndarray:
    z = np.asarray(logits, dtype=np.float64)
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def kl(teacher, logits) -> float:
    """The mean over images of Σ p log(p / q), by loops."""
    p, q = probabilities(teacher), probabilities(logits)
    return sum(p[n, c] * np.log(p[n, c] / q[n, c]) for n in range(len(p)) for c in range(p.shape[1])) / len(p)


def test_divergence_against_loops():
    rng = np.random.default_rng(0)
    z, teacher = rng.normal(size=(5, 4)), 3 * rng.normal(size=(5, 4))
    assert divergence(torch.tensor(z), torch.tensor(teacher)).item() == pytest.approx(kl(teacher, z), rel=1e-12)
    leaf = torch.tensor(z, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: divergence(x, torch.tensor(teacher)), leaf)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_divergence_of_extreme_logits_is_finite_and_none_of_equal_ones(dtype):
    z = torch.tensor([[200.0, -200.0, 0.0]], dtype=dtype, requires_grad=True)
    value = divergence(z, torch.tensor([[-200.0, 200.0, 0.0]], dtype=dtype))
    value.backward()
    assert value.dtype == torch.float32 and value.item() == pytest.approx(400) and z.grad.isfinite().all()
    assert divergence(z, z).item() == 0


def test_no_gradient_reaches_the_teacher():
    teacher = torch.randn(3, 4, requires_grad=True)
    divergence(torch.randn(3, 4, requires_grad=True), teacher).backward()
    assert teacher.grad is None


@pytest.mark.parametrize("networks", [2, 3])
def test_what_each_minimises(networks, make_run, first_batch, cross_entropies):
    run = make_run(f"mutual(networks={networks}, weight=0.7)")
    batch = first_batch(run)
    run.begin_epoch(0)
    logits = [copy.deepcopy(member.network).train()(batch.inputs).detach().numpy() for member in run.members]
    outs = [member.output(batch) for member in run.members]
    all_terms = run.procedure.taught(run, outs, batch, run.progress)
    for k, terms in enumerate(all_terms):
        others = [kl(logits[j], logits[k]) for j in range(networks) if j != k]
        expected = cross_entropies(logits[k], batch.target.numpy()).mean() + 0.7 * np.mean(others)
        assert terms.total.item() == pytest.approx(expected, rel=1e-5)
    assert run.procedure(run, batch).total.item() == pytest.approx(all_terms[0].total.item(), rel=1e-6)


def test_peers_start_differently_and_the_first_as_it_would_alone(make_run):
    run, alone = make_run("mutual(networks=3)"), make_run(None)
    first, *others = [torch.cat([p.flatten() for p in member.network.parameters()]) for member in run.members]
    assert torch.equal(first, torch.cat([p.flatten() for p in alone.network.parameters()]))
    assert len({tuple(weights.tolist()) for weights in (first, *others)}) == 3


def test_all_move_by_the_same_rates_and_count_alike(make_run):
    run = make_run("mutual(networks=3)", ema=0.9, mix="mfw(site='stage1')")
    starts = [copy.deepcopy(member.network.state_dict()) for member in run.members]
    run.epoch(0)
    for member, start in zip(run.members, starts, strict=True):
        assert int(member.done) == run.steps_per_epoch and torch.equal(member.lr, run.lr)
        moved = member.network.state_dict()
        assert not any(torch.equal(start[name], moved[name]) for name in start if name.endswith("weight"))
    assert run.average is not None and all(peer.average is None for peer in run.members[1:])
    assert all(peer.mix_plan is run.mix_plan for peer in run.members[1:])


@pytest.mark.parametrize(
    "options", [{"loss": "equalization(threshold=0.2)"}, {"weighting": "bias(scaling='running')"}], ids=str
)
def test_what_an_objective_draws_and_remembers_is_its_networks_own(options, make_run):
    """So that with weight 0 the first is trained as alone, also where its loss has chance or a memory."""
    losses = [make_run(procedure, **options).epoch(0) for procedure in ("mutual(weight=0)", None)]
    assert losses[0] == losses[1]


def test_its_record_is_of_one_network(make_run):
    run, alone = make_run("mutual"), make_run(None)
    assert run.evaluated.state_dict().keys() == alone.evaluated.state_dict().keys()


@pytest.mark.parametrize(
    ("procedure", "plain", "networks"), [("mutual(networks=3)", True, 3), ("m2m", False, 1), (None, True, 1)]
)
def test_a_gpu_counts_its_networks_and_knows_their_steps(procedure, plain, networks):
    recipe = Recipe.make({"procedure": procedure, "model": "cnn_small"}, {"name": "digits"})
    assert (recipe.capturable, recipe.plain_steps, recipe.networks) == (True, plain, networks)


@pytest.mark.parametrize("bad", ["mutual(networks=1)", "mutual(networks=2.5)", "mutual(weight=-1)"])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(EquipoiseError, match=bad[7:].partition("=")[0]):
        Recipe.make({"procedure": bad}, {"name": "digits"})
