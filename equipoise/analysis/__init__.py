"""Pure functions on arrays: what predictions are worth, and what paired scores of several methods allow one to say."""

from .accuracy import (
    balanced_accuracy,
    classification_ratio,
    confusion_matrix,
    frequency_groups,
    group_accuracy,
    per_class_accuracy,
    top1,
    worst_class_accuracy,
)
from .calibration import brier_score, expected_calibration_error, log_softmax, negative_log_likelihood
from .metrics import METRICS, Metric, evaluate
from .statistics import holm, mean_interval, power_note, seeds_needed, sign_flip_test, smallest_n_for_claim
from .verdict import MethodResult, Verdict, compare

__all__ = [
    "METRICS",
    "MethodResult",
    "Metric",
    "Verdict",
    "balanced_accuracy",
    "brier_score",
    "classification_ratio",
    "compare",
    "confusion_matrix",
    "evaluate",
    "expected_calibration_error",
    "frequency_groups",
    "group_accuracy",
    "holm",
    "log_softmax",
    "mean_interval",
    "negative_log_likelihood",
    "per_class_accuracy",
    "power_note",
    "seeds_needed",
    "sign_flip_test",
    "smallest_n_for_claim",
    "top1",
    "worst_class_accuracy",
]
