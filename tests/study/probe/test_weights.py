"""The weights of classes and of examples."""

import pytest
import torch

from equipoise.imbalance.weightings.effective_number import effective_number


def test_weights_and_effective_numbers(analyzed):
    (method,) = analyzed[1]["weights"]["methods"]
    counts = analyzed[1]["weights"]["counts"]
    numbers = [sum(0.99**k for k in range(n)) for n in counts]  # 1 + β + β² + …
    assert method["name"] == "weighted" and method["effective"] == pytest.approx(numbers, rel=1e-5)
    inverse = [1 / e for e in numbers]
    assert method["weights"] == pytest.approx([10 * w / sum(inverse) for w in inverse], rel=1e-4)
    assert effective_number(torch.tensor([3, 1]), 0.0).tolist() == [1, 1]
    assert effective_number(torch.tensor([3, 1]), 1.0).tolist() == [3, 1]


def test_curves_of_the_example_weight(analyzed):
    alpha = analyzed[1]["alpha"]
    (method,) = alpha["methods"]
    assert method["name"] == "weighing" and alpha["alphas"][0] == 0 and alpha["alphas"][-1] == 1
    assert len(method["curve"]) == len(alpha["alphas"]) and all(0 <= b <= 1 for b in method["best"])
