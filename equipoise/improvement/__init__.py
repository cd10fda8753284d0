"""Corrections of a trained network, of anybody's: chosen on held-out data, judged on other held-out data."""

from ..core.extras import require

require("equipoise.improvement", "scipy")

from .affine import Affine, CorrectedLogits
from .candidates import Candidate, Step
from .images import Images
from .improvement import Improvement
from .improving import improve
from .judged import Estimate, Score

__all__ = [
    "Affine",
    "Candidate",
    "CorrectedLogits",
    "Estimate",
    "Images",
    "Improvement",
    "Score",
    "Step",
    "improve",
]
