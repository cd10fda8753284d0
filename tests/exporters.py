"""What is not everywhere, and tests of ONNX files need."""

import pytest
import torch

from equipoise.deploy.export import OLDEST_FOR_ONNX, WAYS


def needs_onnx(*, exporter=True):
    """Skip the test where it cannot be run; `exporter` is the one of `torch.onnx.export(dynamo=True)`."""
    for package in WAYS["onnx"].needs:
        pytest.importorskip(package)
    if exporter and torch.__version__ < OLDEST_FOR_ONNX:
        pytest.skip(f"PyTorch {torch.__version__} cannot write a batch norm")
