"""The studies at full size: they can be read, and are trained as the papers say.

What the papers say is in protocols.toml, written from their texts, not from the studies.
"""

import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from equipoise.core import Spec
from equipoise.study import Study
from equipoise.train import recipe as recipes
from equipoise.train.recipe import DIALS

ROOT = Path(__file__).parents[2]
PROTOCOLS = tomllib.loads((Path(__file__).parent / "protocols.toml").read_text())["protocol"]
OURS = {  # no table of a paper
    "cifar10_long_tailed", "combination_cifar10", "equipoise_long_tail_cifar10", "equipoise_long_tail_cifar100",
    "reality_check_cifar10", "reality_check_cifar100", "reality_check_search_cifar10", "reality_check_search_cifar100",
    "gap_to_mfw_cifar10", "gap_to_mfw_cifar10_ratio10", "gap_to_mfw_cifar100",
    "gap_to_loss_functions_cifar10", "gap_to_four_things_cifar100",
}  # fmt: skip
FILES = sorted((ROOT / "studies" / "full").glob("*.toml"))
OF_PAPERS = [path for path in FILES if path.stem not in OURS]
TOLD = {
    "task", "ratio", "valid", "model", "augment",
    "epochs", "batch_size", "lr", "rates", "warmup", "momentum", "nesterov", "weight_decay",
}  # fmt: skip
ABOUT = {"files", "but", "but_rows", "rows"}


@pytest.fixture(autouse=True)
def without_other_libraries(monkeypatch):
    """Networks of timm and torchvision count as sound: neither need be installed."""
    sketch = recipes._sketch
    other = (1, ("input", "body.layer1"))
    monkeypatch.setattr(recipes, "_sketch", lambda model, *rest: other if "/" in model else sketch(model, *rest))


@cache
def study_of(path):
    return Study.from_toml(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_study_is_sound_and_trained_as_its_paper_says(path):
    study = study_of(path)
    assert study.baseline in study.methods and study.question.endswith("?")
    assert len({recipe.key for recipe in study.methods.values()}) == len(study.methods), "no method is there twice"
    wrong = [line for protocol in protocols_of(path.stem) for line in departures(study, protocol)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", OF_PAPERS, ids=lambda path: path.stem)
def test_the_paper_was_asked_about_everything(path):
    """What is said of single rows counts as said."""
    told = set()
    for protocol in protocols_of(path.stem):
        told |= protocol.keys() | {field for fields in protocol.get("rows", {}).values() for field in fields}
    assert told >= TOLD, f"nothing is said of {sorted(TOLD - told)}"


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol["files"][:60])
def test_every_protocol_is_about_a_study_and_names_its_source(protocol):
    for pattern in patterns(protocol):
        assert any(fnmatch(path.stem, pattern) for path in FILES), f"{pattern} matches no file"
    said = [protocol, *protocol.get("rows", {}).values()]
    assert all(where for fields in said for field, (_, where) in about(fields))


# -- what a protocol is about ------------------------------------------------------------------------------------------


def patterns(protocol, key="files"):
    return [pattern.strip() for pattern in protocol.get(key, "").split(",")]


def protocols_of(stem):
    for protocol in PROTOCOLS:
        named, left_out = (any(fnmatch(stem, p) for p in patterns(protocol, key)) for key in ("files", "but"))
        if named and not left_out:
            yield protocol


def about(fields):
    return [(field, said) for field, said in fields.items() if field not in ABOUT]


def departures(study, protocol):
    """A sentence for each value of the study that is not the paper's."""
    for name, recipe in study.methods.items():
        if not fnmatch(name, protocol.get("but_rows", "")):
            yield from unlike(name, recipe, protocol)
    for name, fields in protocol.get("rows", {}).items():
        yield from unlike(name, study.methods[name], fields)


def unlike(name, recipe, fields):
    for field, (value, where) in about(fields):
        for got, wanted in compared(recipe, field, value):
            if not same(got, wanted, field):
                yield f"{name}: {field} is {got!r}, the paper has {wanted!r} ({where})"


# -- what a recipe has -------------------------------------------------------------------------------------------------


def compared(recipe, field, value):
    """Pairs of what the recipe has and what the paper has; none where the paper does not say."""
    if value == "?":
        return []
    if field == "rates":
        return [(rate_of(recipe.plan, int(epoch)), rate) for epoch, rate in value.items()]
    return [(value_of(recipe, field), value)]


def value_of(recipe, field):
    task = Spec.parse(recipe.task.name)
    if field.startswith("task_"):
        return dict(task.params)[field.removeprefix("task_")]
    if field == "task":
        return task.name
    if field in ("imbalance", "ratio", "valid"):
        return getattr(recipe.task, field)
    return getattr(recipe if field in DIALS else recipe.plan, field)


def rate_of(plan, epoch):
    """The learning rate after so many epochs."""
    schedule = Spec.parse(plan.schedule).build("schedule", epochs=plan.epochs, warmup_epochs=plan.warmup)
    return plan.lr * schedule(epoch) * (min(1.0, epoch / plan.warmup) if plan.warmup else 1.0)


def same(got, wanted, field):
    if field in DIALS and "/" in wanted:
        return got == wanted
    if field in DIALS:  # what the paper does not say of a method may be anything
        got, wanted = Spec.parse(got), Spec.parse(wanted)
        return got.name == wanted.name and set(got.params) >= set(wanted.params)
    if isinstance(wanted, str | bool):
        return got == wanted
    # cosine annealing of the first epochs is not told from the warm-up alone
    return got == pytest.approx(wanted, rel=0.01 if field == "rates" else 1e-4, abs=1e-9)
