"""Where Triton's kernels can be tried: on a GPU or, slowly, in Triton's interpreter with TRITON_INTERPRET=1."""

import importlib.util
import os

import pytest
import torch

CUDA = torch.cuda.is_available()
HAS_TRITON = importlib.util.find_spec("triton") is not None
INTERPRETED = HAS_TRITON and os.environ.get("TRITON_INTERPRET") == "1"
NEEDS_TRITON = [
    pytest.mark.gpu,
    pytest.mark.skipif(not (HAS_TRITON and CUDA) and not INTERPRETED, reason="needs a CUDA GPU and Triton"),
]
on_gpu = pytest.mark.skipif(not CUDA, reason="needs a CUDA GPU")
DEVICE = "cuda" if CUDA else "cpu"
LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
TOLERANCE = {torch.float32: 5e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


def assert_same_gradients(y, inputs, expected, exact, grad, tolerance):
    """Gradients of `y` for its `inputs` are those of `expected` for `exact`, the same inputs in float64."""
    found = torch.autograd.grad(y, inputs, grad)
    wanted = torch.autograd.grad(expected, exact, grad.double())
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a.double(), b, atol=tolerance * max(1.0, b.abs().max().item()), rtol=tolerance)
