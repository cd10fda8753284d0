"""What every method must do, as functions for anyone's tests: those of a plugin, and our own::

    from equipoise.testing import check_method

    def test_it_is_a_loss():
        check_method("loss", "poly1")

They raise an `AssertionError` that says what was expected, and need torch and numpy alone.
"""

from .augments import check_augment
from .heads import check_head
from .losses import check_loss
from .methods import check_method, check_registration
from .mixes import check_mix
from .norms import check_norm
from .samplers import check_sampler
from .weightings import check_weighting

__all__ = [
    "check_augment",
    "check_head",
    "check_loss",
    "check_method",
    "check_mix",
    "check_norm",
    "check_registration",
    "check_sampler",
    "check_weighting",
]
