"""Makes the doctests of the package see torch."""

import pytest
import torch

collect_ignore_glob = ["equipoise/norms/_triton*.py"]  # Triton is not everywhere


@pytest.fixture(autouse=True)
def _torch_in_doctests(doctest_namespace):
    doctest_namespace["torch"] = torch
