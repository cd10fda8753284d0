"""Makes the doctests of the package see torch."""

import pytest
import torch

collect_ignore_glob = [
    "equipoise/norms/kernels/triton*.py",  # Triton is not everywhere
    "tests/*/programs/*",  # run by tests in processes of their own; some register methods that are made to fail
]


@pytest.fixture(autouse=True)
def _torch_in_doctests(doctest_namespace):
    doctest_namespace["torch"] = torch
