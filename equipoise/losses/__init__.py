"""Losses on hard labels, one a file, and the penalty on logits."""

from ._base import FusedLoss, Loss
from .balanced_softmax import BalancedSoftmaxLoss, balanced_softmax_loss
from .cdt import CDTLoss, cdt_loss, cdt_temperatures
from .cross_entropy import CrossEntropyLoss, cross_entropy_loss
from .equalization import EqualizationLoss, equalization_loss
from .focal import FocalLoss, focal_loss
from .label_smoothing import LabelSmoothingLoss, label_smoothing_loss
from .ldam import LDAMLoss, ldam_loss, ldam_margins
from .logit_adjusted import LogitAdjustedLoss, logit_adjusted_loss
from .logit_norm import LogitNormLoss, logit_norm_loss
from .logit_penalty import LogitPenalty, logit_penalty
from .sigmoid import SigmoidLoss, sigmoid_loss
from .sigmoid_focal import SigmoidFocalLoss, sigmoid_focal_loss
from .squared_error import SquaredErrorLoss, squared_error_loss

__all__ = [
    "BalancedSoftmaxLoss",
    "CDTLoss",
    "CrossEntropyLoss",
    "EqualizationLoss",
    "FocalLoss",
    "FusedLoss",
    "LDAMLoss",
    "LabelSmoothingLoss",
    "LogitAdjustedLoss",
    "LogitNormLoss",
    "LogitPenalty",
    "Loss",
    "SigmoidFocalLoss",
    "SigmoidLoss",
    "SquaredErrorLoss",
    "balanced_softmax_loss",
    "cdt_loss",
    "cdt_temperatures",
    "cross_entropy_loss",
    "equalization_loss",
    "focal_loss",
    "label_smoothing_loss",
    "ldam_loss",
    "ldam_margins",
    "logit_adjusted_loss",
    "logit_norm_loss",
    "logit_penalty",
    "sigmoid_focal_loss",
    "sigmoid_loss",
    "squared_error_loss",
]
