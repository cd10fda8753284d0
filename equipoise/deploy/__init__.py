"""A trained model taken out of its study: kept in a folder, asked about images, exported. Needs torch and numpy; a
saved model also safetensors, image files Pillow."""

from ..imbalance.prior import read_prior
from .calibration import Calibration
from .classifier import Classifier, all_weights, fitted_values, portable_recipe
from .description import Description, Score
from .model import TrainedModel, is_model
from .prediction import find_images, predict, predicted_parts
from .predictions import Predictions
from .preprocessing import Preprocessing
from .promise import Promise, Range

__all__ = [
    "Calibration",
    "Classifier",
    "Description",
    "Predictions",
    "Preprocessing",
    "Promise",
    "Range",
    "Score",
    "TrainedModel",
    "all_weights",
    "find_images",
    "fitted_values",
    "is_model",
    "portable_recipe",
    "predict",
    "predicted_parts",
    "read_prior",
]
