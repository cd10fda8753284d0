"""Which of the compiled kernels are loaded, and what they are used for. Their results are tested with the methods."""

import ctypes
from pathlib import Path

import pytest
import torch

from equipoise import native

FOLDER = Path(native.__file__).parent
compiled = sorted(FOLDER.glob("_kernels*.so"))
needs_kernels = pytest.mark.skipif(not compiled, reason="the package was installed without a C compiler")


@pytest.fixture
def fresh():
    """The library is looked for anew, in this test and after it."""
    native.library.cache_clear()
    yield
    native.library.cache_clear()


@needs_kernels
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("capability", "name"),
    [("AVX512", "_kernels_avx512"), ("AVX2", "_kernels_avx2"), ("DEFAULT", "_kernels"), ("SVE256", "_kernels")],
)
def test_the_best_kernels_that_the_processor_can_run_are_loaded(monkeypatch, capability, name):
    opened = []

    class Library:
        def __init__(self, path):
            opened.append(Path(path).name.partition(".")[0])

        def equipoise_version(self):
            return native.VERSION

    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert native.library() is not None and opened == [name]


@needs_kernels
@pytest.mark.usefixtures("fresh")
def test_kernels_of_another_version_are_left_alone(monkeypatch):
    monkeypatch.setattr(native, "VERSION", native.VERSION + 1)
    assert native.library() is None


@pytest.mark.usefixtures("fresh")
def test_kernels_that_cannot_be_loaded_are_left_alone(monkeypatch):
    def refuse(path):
        raise OSError("undefined symbol: GOMP_parallel")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert native.library() is None


def test_they_are_for_single_precision_on_the_cpu_outside_of_transformations(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: "there")
    x = torch.zeros(2)
    assert native.suits(x, None)
    assert not native.suits(x, x.double()) and not native.suits(x.to("meta")) and not native.suits(x.bfloat16())
    seen = []
    torch.func.vmap(lambda v: seen.append(native.suits(v)) or v)(torch.zeros(2, 2))
    assert seen == [False]
    monkeypatch.setattr(native, "library", lambda: None)
    assert not native.suits(x)


def test_the_version_is_the_same_on_both_sides():
    assert f"#define EQUIPOISE_VERSION {native.VERSION} " in (FOLDER / "kernels.h").read_text()
