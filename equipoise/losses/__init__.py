"""Losses on hard labels, one a file, and the penalty on logits."""

from ._base import Loss
from .balanced_softmax import BalancedSoftmaxLoss, balanced_softmax_loss
from .cross_entropy import CrossEntropyLoss, cross_entropy_loss
from .focal import FocalLoss, focal_loss
from .ldam import LDAMLoss, ldam_loss, ldam_margins
from .sigmoid_focal import SigmoidFocalLoss, sigmoid_focal_loss

__all__ = [
    "BalancedSoftmaxLoss",
    "CrossEntropyLoss",
    "FocalLoss",
    "LDAMLoss",
    "Loss",
    "SigmoidFocalLoss",
    "balanced_softmax_loss",
    "cross_entropy_loss",
    "focal_loss",
    "ldam_loss",
    "ldam_margins",
    "sigmoid_focal_loss",
]
