"""Names that others rely on: they are there, and each package exports what it says."""

import importlib
import re

import pytest

STABLE = {
    "losses": """CrossEntropyLoss LabelSmoothingLoss SigmoidLoss SquaredErrorLoss LogitNormLoss FocalLoss
        SigmoidFocalLoss
        LDAMLoss CDTLoss BalancedSoftmaxLoss LogitAdjustedLoss EqualizationLoss logit_penalty LogitPenalty""",
    "imbalance": """effective_number_weights EffectiveNumber InverseFrequency bias_weights BiasWeighting tau_normalize
        logit_adjustment ClassBalancedSampler DistributedWeightedSampler""",
    "mixing": "mfw_weights MajorFeatureWeakening Mixup ManifoldMixup Remix CutMix ContextRichOversampling",
    "norms": """GhostBatchNorm2d BatchGroupNorm2d BatchRenorm2d replace_norm set_example_weight example_weight
        tune_example_weight decay_groups unshielded_affine""",
    "models": "CosineHead create_model",
    "data": "long_tailed_counts step_counts load_task",
    "analysis": """expected_calibration_error classification_ratio compare class_separation linear_cka
        MinibatchCKA feature_deviation angular_visual_hardness nonzero_share singular_values""",
    "train": "Recipe Plan Run Objective",
    "store": "Store Record",
    "study": "Study PRESETS",
    "report": "write_report collect",
}


@pytest.mark.parametrize("package", STABLE)
def test_stable_names(package):
    module = importlib.import_module(f"equipoise.{package}")
    assert set(STABLE[package].split()) <= set(module.__all__)


@pytest.mark.parametrize("package", STABLE)
def test_what_is_exported_is_there(package):
    module = importlib.import_module(f"equipoise.{package}")
    assert all(hasattr(module, name) for name in module.__all__)
    assert list(module.__all__) == sorted(set(module.__all__), key=_as_a_reader_sorts)


def _as_a_reader_sorts(name):
    """Constants, classes, functions; resnet8 before resnet10."""
    parts = [(int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", name)]
    return not name.isupper(), not name[0].isupper(), parts
