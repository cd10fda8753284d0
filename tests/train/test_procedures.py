"""Every procedure trains, resumes bit for bit, and goes with the other dials or says why not."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.analysis import evaluate
from equipoise.core import EquipoiseError, Spec, cards
from equipoise.data import load_task
from equipoise.models import create_model, from_torch
from equipoise.train import Fitting, Recipe, Run, Stopped, choose_convolutions, fit, fit_pack, predict
from equipoise.train.procedures import BilateralBranch

CPU = torch.device("cpu")
LONG_TAILED = {"name": "digits", "imbalance": "long_tailed", "ratio": 20}
# each with the phase in which it acts inside a short training
PROCEDURES = {
    "bbn": "bbn",
    "m2m": "m2m(start=0.5, beta=0.9, gamma=0.3)",
    "meta_weight_net": "meta_weight_net(lr=0.01)",
    "domain_adaptation": "domain_adaptation(start=0.5)",
    "oltr": "oltr(start=0.5)",
    "mutual": "mutual(networks=2)",
}
everyone = pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=PROCEDURES)


def make_run(procedure, seed=0, device=CPU, task=(), **options):
    options = {"procedure": procedure, "model": "cnn_small", "epochs": 6, "batch_size": 32} | options
    recipe = Recipe.make(options, LONG_TAILED | dict(task), seed)
    return Run(recipe, load_task(**recipe.task.__dict__, seed=seed).to(device), device)


def quick_run(procedure, **options):
    return make_run(procedure, task={"n_max": 64}, **{"model": "cnn_small(width=4)", "epochs": 4} | options)


def metrics(logits, labels):
    return evaluate(logits, labels, np.array([110, 78, 56, 40, 29, 20, 14, 10, 7, 5]))


def test_all_are_in_the_list():
    assert {entry.name for entry in cards("procedure")} == set(PROCEDURES)


@everyone
def test_it_learns_long_tailed_digits(procedure):
    run = make_run(procedure, epochs=8)
    curves = fit(run, evaluate=metrics)
    assert all(map(math.isfinite, curves["train_loss"])) and curves["train_loss"][-1] < curves["train_loss"][0]
    test = predict(run, run.task.test)
    assert metrics(test["logits"], test["labels"])["balanced_accuracy"] > 0.4  # chance is 0.1


@pytest.mark.parametrize("stop_after", [1, 2, 3])  # before, at and after the epoch at which the deferred ones start
@everyone
def test_a_run_that_is_stopped_ends_with_the_same_numbers(procedure, stop_after, tmp_path):
    options = {"head": "meta_embedding" if "oltr" in procedure else "dropout", "ema": 0.9}
    whole = quick_run(procedure, **options)
    expected = fit(whole, evaluate=metrics)
    asked = iter(range(1, 9))
    with pytest.raises(Stopped):
        fit(quick_run(procedure, **options), evaluate=metrics, folder=tmp_path, stop=lambda: next(asked) == stop_after)
    torch.manual_seed(99)  # a new process has another global state
    last = quick_run(procedure, **options)
    assert fit(last, evaluate=metrics, folder=tmp_path) == expected
    states = [[*run.evaluated.state_dict().values(), *run.procedure.state_dict().values()] for run in (whole, last)]
    for a, b in zip(*states, strict=True):
        assert torch.equal(a, b)


@everyone
def test_another_seed_gives_another_result_and_the_global_generator_has_no_say(procedure):
    def losses(seed, global_seed):
        torch.manual_seed(global_seed)
        return fit(quick_run(procedure, seed=seed), evaluate=metrics)["train_loss"]

    assert losses(0, 1) == losses(0, 2) != losses(1, 1)


@everyone
def test_its_state_has_its_final_shapes_from_the_beginning(procedure):
    run = quick_run(procedure)
    shapes = {name: t.shape for name, t in run.procedure.state_dict().items()}
    fit(run, evaluate=metrics)
    assert {name: t.shape for name, t in run.procedure.state_dict().items()} == shapes


@pytest.mark.parametrize(
    "options",
    [{"precision": "bf16"}, {"weighting": "bias"}, {"penalty": "logit_penalty"},
     {"loss": "ldam", "head": "cosine(tau=1.0, bias=False)"}],
    ids=str,
)  # fmt: skip
@everyone
def test_it_goes_with_the_other_dials(procedure, options, request):
    if "precision" in options:
        request.getfixturevalue("bf16")
    if "oltr" in procedure:
        options = {name: value for name, value in options.items() if name != "head"}
    curves = fit(quick_run(procedure, **options), evaluate=metrics)
    assert all(map(math.isfinite, curves["train_loss"]))


@everyone
def test_a_second_stage_trains_plainly_what_it_has_made(procedure):
    first = quick_run(procedure)
    recipe = replace(first.recipe, stage=str(Spec.parse("crt").resolved("stage")))
    second = Run(recipe, first.task, CPU, first.network.state_dict())
    assert second.procedure is None
    second.epoch(0)
    assert torch.equal(second.network.stem[0].weight, first.network.stem[0].weight)


@pytest.mark.parametrize("name", sorted(PROCEDURES.keys() - {"m2m", "mutual"}))
def test_a_mixing_is_refused_where_it_could_not_act(name):
    with pytest.raises(EquipoiseError, match="no mixing can act"):
        quick_run(PROCEDURES[name], mix="mfw")
    fit(quick_run(PROCEDURES["m2m"], mix="mfw", epochs=2), evaluate=metrics)


@pytest.mark.parametrize("name", ["m2m", "domain_adaptation", "oltr"])
def test_a_start_that_never_comes_is_refused(name):
    with pytest.raises(EquipoiseError, match="would never act"):
        quick_run(f"{name}(start=0.8)", epochs=4)
    assert not quick_run(f"{name}(start=0.8)", epochs=5).procedure.active
    assert not quick_run(f"{name}(start=1)", epochs=1).procedure.active


@pytest.mark.parametrize(
    ("epochs", "start", "first"), [(5, 0.8, 4), (30, 0.8, 24), (6, 0.5, 3), (7, 0.5, 4), (3, 0, 0)]
)
def test_deferred_ones_start_once_and_in_time(epochs, start, first):
    run = quick_run(f"m2m(start={start})", epochs=epochs)
    starts = []
    run.procedure.switch = starts.append
    acting = [run.procedure.start_epoch(run, number) or run.procedure.active for number in range(epochs)]
    assert acting == [number >= first for number in range(epochs)] and len(starts) == 1


@pytest.mark.parametrize("entry", [e for e in cards("procedure") if e.neutral], ids=lambda e: e.name)
def test_at_its_neutral_values_it_is_the_plain_baseline(entry):
    arguments = ", ".join(f"{name}={value}" for name, value in entry.neutral.items())
    others = dict.fromkeys(entry.companions, "none") | {"sampler": "uniform"}
    plain, neutral = (quick_run(procedure, **others) for procedure in (None, f"{entry.name}({arguments})"))
    assert fit(plain, evaluate=metrics) == fit(neutral, evaluate=metrics)


@pytest.mark.parametrize(
    "bad",
    ["m2m(beta=1.5)", "m2m(gamma=-1)", "m2m(steps=2.5)", "m2m(start=2)", "meta_weight_net(hidden=0)",
     "meta_weight_net(lr=0)", "domain_adaptation(step_size=0)", "oltr(weight=-1)", "bbn(alpha=1)"],
)  # fmt: skip
def test_bad_parameters_are_refused(bad):
    with pytest.raises(EquipoiseError, match=re.escape(bad.partition("(")[2].partition("=")[0])):
        Recipe.make({"procedure": bad}, LONG_TAILED)


def test_networks_that_do_not_fit_are_refused():
    with pytest.raises(EquipoiseError, match='head = "meta_embedding"'):
        quick_run("oltr(start=0.5)", head="linear")
    other = from_torch(nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10)))
    with pytest.raises(EquipoiseError, match="last block"):
        BilateralBranch([2, 1]).adapt(other, nn.Linear)


@pytest.mark.parametrize("entry", cards("procedure"), ids=lambda e: e.name)
def test_docstring_sections_in_order(entry, check_docstring):
    check_docstring(entry)
    assert entry.year and entry.arxiv


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@everyone
def test_no_step_waits_for_the_device(procedure, precision, never_waiting):
    run = make_run(procedure, device=torch.device("cuda"), precision=precision)
    run.epoch(0)
    for number in (1, 4):
        run.network.train()
        run.order = run.sampler.order(run.streams["order"], number / 6).cuda()
        run.procedure.start_epoch(run, 3 if number == 4 else number)
        run.step()
        with never_waiting():
            run.step()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_captured_in_a_pack_they_are_what_they_are_alone(precision, monkeypatch):
    """Also where some begin to act at an epoch: then all steps are captured anew."""
    for name in ("benchmark", "deterministic"):
        monkeypatch.setattr(torch.backends.cudnn, name, getattr(torch.backends.cudnn, name))
    choose_convolutions()

    def run(procedure):
        return make_run(procedure, device=torch.device("cuda"), precision=precision)

    alone = [fit(run(procedure), evaluate=metrics) for procedure in PROCEDURES.values()]
    together = fit_pack([Fitting(run(procedure), metrics) for procedure in PROCEDURES.values()])
    for name, curves, expected in zip(PROCEDURES, together, alone, strict=True):
        assert curves == expected, name


@pytest.mark.parametrize("procedure", ["m2m(start=0.5)", "domain_adaptation(start=0.5)", "oltr(start=0.5)"])
def test_a_graph_is_told_when_a_procedure_begins_to_act(procedure):
    run, phases = make_run(procedure), []
    for number in range(6):
        run.begin_epoch(number)
        phases.append(run.phase)
    assert run.capturable and phases == [False] * 3 + [True] * 3


@everyone
def test_a_graph_can_have_its_step(procedure):
    assert make_run(procedure, epochs=2).recipe.capturable


def test_bbn_widens_a_resnet32_by_one_block_and_a_head():
    plain = create_model("resnet32", 10)
    wide = make_run("bbn", model="resnet32", epochs=1).network
    count = {n: sum(p.numel() for p in m.parameters()) for n, m in (("plain", plain), ("wide", wide))}
    block, head, stem = 2 * 64 * 64 * 9 + 4 * 64, 64 * 10, 2 * 16 * 9  # gray images have two channels less
    assert count["wide"] == count["plain"] + block + head - stem
    assert wide.output(torch.zeros(2, 1, 8, 8)).features.shape == (2, 128)
