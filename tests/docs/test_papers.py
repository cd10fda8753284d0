"""docs/papers.md names what is there, and leaves out no study at full size."""

import importlib
import re
from dataclasses import fields
from pathlib import Path

import pytest

from equipoise.core import cards
from equipoise.core.registry import KINDS
from equipoise.study import PRESETS
from equipoise.train import DIALS, Plan, TaskChoice

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "papers.md").read_text()
CODE = sorted(set(re.findall(r"`([^`]+)`", TEXT)))
GLOBS = [code for code in CODE if code.startswith("studies/")]
PRESETS_NAMED = [code.strip('"') for code in CODE if code.startswith('"')]
FUNCTIONS = [code for code in CODE if re.fullmatch(r"equipoise(\.\w+)+", code)]
FULL = {path.relative_to(ROOT).as_posix() for path in (ROOT / "studies" / "full").glob("*.toml")}


@pytest.mark.parametrize("pattern", GLOBS)
def test_every_file_named_is_there(pattern):
    assert list(ROOT.glob(pattern))


def test_every_study_at_full_size_is_named():
    named = {path.relative_to(ROOT).as_posix() for pattern in GLOBS for path in ROOT.glob(pattern)}
    assert named >= FULL, sorted(FULL - named)


def test_every_preset_is_named():
    assert set(PRESETS_NAMED) <= PRESETS.keys()
    of_no_table = {"Balanced softmax", "Logit adjustment (loss)", "Logit adjustment (post-hoc)"}
    # one stands for all data sets and ratios
    missing = {name for name in PRESETS if not re.search(r"^CB \(CIFAR|\(CIFAR-100?\)$", name)} - set(PRESETS_NAMED)
    assert missing == of_no_table


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_named_is_there(name):
    module, _, function = name.rpartition(".")
    assert callable(getattr(importlib.import_module(module), function))


def test_every_method_network_data_set_and_option_named_is_there():
    registered = {card.name for kind in KINDS for card in cards(kind)}
    options = {field.name for choices in (Plan, TaskChoice) for field in fields(choices)} | DIALS.keys()
    assert {code for code in CODE if re.fullmatch(r"[a-z_0-9]+", code)} <= registered | options
