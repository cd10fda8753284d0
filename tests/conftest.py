"""Makes doctests see torch, and every test start from the same random state."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _namespace(doctest_namespace):
    doctest_namespace["torch"] = torch


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
