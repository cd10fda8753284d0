"""Makes the doctests of the package see torch."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _torch_in_doctests(doctest_namespace):
    doctest_namespace["torch"] = torch
