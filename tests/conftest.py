"""Every test starts from the same random state, and none fails for the pace of the machine."""

import inspect
import os
import subprocess
import warnings
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest
import torch

from equipoise import native

hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@contextmanager
def _no_wait():
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch calls the mode a prototype
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.fixture
def never_waiting():
    """``with never_waiting():`` fails where the host waits for the GPU, and leaves the next test alone."""
    return _no_wait


@pytest.fixture(scope="session")
def bf16():
    """Skips what computes in bf16 on a CPU that announces more than it can do."""
    from equipoise.study.run.bf16 import bf16_here, words

    if (found := bf16_here()).problem:
        pytest.skip(words(found))


@pytest.fixture(params=["kernels", "PyTorch alone"])
def either_way(request, monkeypatch):
    """With the kernels in C, then as where they were not compiled."""
    if request.param == "PyTorch alone":
        monkeypatch.setattr(native, "library", lambda: None)
    elif native.library() is None:
        pytest.skip("the package was installed without a C compiler")


@pytest.fixture
def small_disk(tmp_path, request):
    """A disk with the options of a mount that the test's parameter gives, such as "size=60k"."""
    if os.geteuid() != 0 or not Path("/proc/mounts").exists():
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", disk]
    mounted = subprocess.run(mount, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"mount is not allowed here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.fixture
def check_docstring():
    """That a method of ours has all sections of its page, in order, and that each parameter is explained."""

    def check(entry):
        doc = inspect.getdoc(entry.factory)
        assert doc.partition("\n")[0].endswith(".")
        sections = (".. math::", "Args:", "Differs from the paper:", "Example:", ">>>", "Reference:")
        places = [doc.find(section) for section in sections]
        assert -1 not in places and places == sorted(places)
        args = doc[doc.find("Args:") : doc.find("Differs from the paper:")]
        assert all(f"    {name}:" in args for name in inspect.signature(entry.factory).parameters)

    return check
