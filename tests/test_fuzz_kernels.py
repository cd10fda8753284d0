"""A few hundred of the calls that `benchmarks/fuzz_kernels.py` makes by the thousand."""

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from equipoise import native

FILE = Path(__file__).parent.parent / "benchmarks" / "fuzz_kernels.py"


@pytest.fixture(scope="module")
def fuzz():
    sys.path.insert(0, str(FILE.parent))  # as Python does for a script
    spec = importlib.util.spec_from_file_location("fuzz_kernels", FILE)
    module = sys.modules["fuzz_kernels"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(FILE.parent))
    return module


def test_no_crash_and_no_other_number(fuzz):
    endings, wrong = fuzz.fuzz(300, seed=1)
    assert not wrong, "\n".join(wrong)
    assert sum(endings[name] for name in fuzz.FINE) == 300
    assert endings["agrees"] > 150
    assert endings["reached a kernel"] > 75 or native.library() is None


def test_a_wrong_number_or_shape_is_found(fuzz):
    torch = fuzz.torch
    subject = fuzz.Subject("", None, None, None, None, None, list, {torch.float32: 2e-5})
    exact = fuzz.Outcome(torch.ones(3), torch.zeros(2))

    def judged(value, slope=None):
        well_conditioned = SimpleNamespace(error=lambda what: 0.0)
        return fuzz._judged(subject, fuzz.Outcome(value, slope), exact, "forward", well_conditioned)

    assert judged(torch.ones(3)) == judged(torch.ones(3), torch.zeros(2)) == "agrees"
    assert judged(torch.ones(3, device="meta")) == "same shape"
    assert "value is off by 0.001" in judged(torch.full((3,), 1.001))
    assert "slope is off by nan" in judged(torch.ones(3), torch.full((2,), torch.nan))
    assert "of shape (4,) instead of (3,)" in judged(torch.ones(4))


def test_an_error_of_ours_alone_is_found(fuzz):
    def fails(x):
        raise RuntimeError("out of paper")

    torch = fuzz.torch
    for theirs, found in ((fails, "PyTorch refuses too"), (torch.sin, "an error where PyTorch has none: paper")):
        subject = fuzz.Subject("", fails, torch.sin, fails, theirs, None, list, {})
        assert fuzz._refusal(subject, "forward", torch.ones(2), torch.ones(2), "float32", "paper") == found


def test_a_crash_is_counted_and_the_next_call_made(fuzz, tmp_path, monkeypatch):
    crashing = tmp_path / "crashing.py"
    crashing.write_text(FILE.read_text().replace("            call = made(number, seed)\n", CRASH))
    monkeypatch.setattr(fuzz, "__file__", str(crashing))
    monkeypatch.setenv("PYTHONPATH", str(FILE.parent), prepend=os.pathsep)
    endings, wrong = fuzz.fuzz(4)
    assert endings["crashed"] == 1 and endings["agrees"] == 3
    assert len(wrong) == 1 and wrong[0].startswith("call 2: exit code -")


CRASH = """\
            if number == 2:
                import os
                os.abort()
            call = Call("", "agrees", False)
"""
