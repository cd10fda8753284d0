"""Every test starts from the same random state, and none fails for the pace of the machine."""

import warnings
from contextlib import contextmanager

import hypothesis
import pytest
import torch

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
