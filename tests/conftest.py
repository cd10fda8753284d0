"""Every test starts from the same random state, and none fails for the pace of the machine."""

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
