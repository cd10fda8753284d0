"""Pure functions on arrays: what predictions are worth, and what paired scores of several methods allow one to say."""

from ..core.extras import require

require("equipoise.analysis", "scipy")

from .metrics.accuracy import (
    accuracy_under_prior,
    balanced_accuracy,
    classification_ratio,
    confusion_matrix,
    frequency_groups,
    group_accuracy,
    macro_f1,
    per_class_accuracy,
    top1,
    top_k_accuracy,
    worst_class_accuracy,
)
from .metrics.calibration import (
    adaptive_calibration_error,
    brier_score,
    classwise_calibration_error,
    expected_calibration_error,
    group_calibration_error,
    log_softmax,
    negative_log_likelihood,
    sigmoid_log_probabilities,
    sigmoid_probabilities,
)
from .metrics.hardness import angular_visual_hardness
from .metrics.reliability import ReliabilityCurve, calibration_error_interval, reliability_curve
from .metrics.robustness import ALEXNET_ERRORS, mean_corruption_error, relative_mean_corruption_error, subset_logits
from .metrics.scores import METRICS, Metric, evaluate
from .metrics.temperature import fit_temperature
from .representations.cka import MinibatchCKA, cka_matrix, gram_matrix, linear_cka
from .representations.densities import CosineDistances, cosine_distances, kernel_density
from .representations.deviation import cross_entropy_gradients, feature_deviation, feature_gradient_norms
from .representations.ensembles import ensemble_accuracy, ensemble_matrix, modal_prediction
from .representations.separation import ClassSeparation, class_separation
from .representations.similarity import Agreement, Dendrogram, agreement, agreement_matrix, dendrogram
from .representations.sparsity import nonzero_share
from .representations.spectra import class_centroids, singular_values
from .representations.transfer import LinearProbe, linear_probe
from .statistics.bootstrap import bootstrap_interval
from .statistics.combined import Combined, combine_scores, mean_effect
from .statistics.signed_rank import signed_rank_test
from .statistics.tests import holm, mean_interval, power_note, seeds_needed, sign_flip_test, smallest_n_for_claim
from .statistics.variance import NestedVariance, VarianceSplit, nested_variance, variance_split
from .statistics.verdict import MethodResult, Verdict, compare

__all__ = [
    "ALEXNET_ERRORS",
    "METRICS",
    "Agreement",
    "ClassSeparation",
    "Combined",
    "CosineDistances",
    "Dendrogram",
    "LinearProbe",
    "MethodResult",
    "Metric",
    "MinibatchCKA",
    "NestedVariance",
    "ReliabilityCurve",
    "VarianceSplit",
    "Verdict",
    "accuracy_under_prior",
    "adaptive_calibration_error",
    "agreement",
    "agreement_matrix",
    "angular_visual_hardness",
    "balanced_accuracy",
    "bootstrap_interval",
    "brier_score",
    "calibration_error_interval",
    "cka_matrix",
    "class_centroids",
    "class_separation",
    "classification_ratio",
    "classwise_calibration_error",
    "combine_scores",
    "compare",
    "confusion_matrix",
    "cosine_distances",
    "cross_entropy_gradients",
    "dendrogram",
    "ensemble_accuracy",
    "ensemble_matrix",
    "evaluate",
    "expected_calibration_error",
    "feature_deviation",
    "feature_gradient_norms",
    "fit_temperature",
    "frequency_groups",
    "gram_matrix",
    "group_accuracy",
    "group_calibration_error",
    "holm",
    "kernel_density",
    "linear_cka",
    "linear_probe",
    "log_softmax",
    "macro_f1",
    "mean_corruption_error",
    "mean_effect",
    "mean_interval",
    "modal_prediction",
    "negative_log_likelihood",
    "nested_variance",
    "nonzero_share",
    "per_class_accuracy",
    "power_note",
    "relative_mean_corruption_error",
    "reliability_curve",
    "seeds_needed",
    "sigmoid_log_probabilities",
    "sigmoid_probabilities",
    "sign_flip_test",
    "signed_rank_test",
    "singular_values",
    "smallest_n_for_claim",
    "subset_logits",
    "top1",
    "top_k_accuracy",
    "variance_split",
    "worst_class_accuracy",
]
