"""Class shares of unlabelled data, from the outputs of a network on it."""

from __future__ import annotations

import torch
from torch import Tensor

from ...core import checks
from .temperature import fit_temperature

SMALLEST = 1e-30  # a probability that was rounded to 0 has a logarithm all the same
MOST_STEPS = 10_000
TOLERANCE = 1e-9  # of all shares together


def estimate_prior(probs_valid: Tensor, labels_valid: Tensor, probs_unlabelled: Tensor) -> Tensor:
    r"""The share of each class (C,), float64, in data without labels, whose classes look as in the labelled data.

    .. math:: q_c \leftarrow \frac{1}{M} \sum_{j=1}^{M} \frac{p_c(x_j) \, q_c / \pi_c}{\sum_k p_k(x_j) \, q_k / \pi_k}

    That is expectation maximization for the most likely shares. π are the shares of `labels_valid`, and p are the
    probabilities after `fit_bias_corrected`, without which the answer is often far off.

    Args:
        probs_valid: probabilities (N, C) that the network gives labelled data it was not trained on.
        labels_valid: their labels (N,). The share of a class without any is not estimated: it is 0.
        probs_unlabelled: probabilities (M, C) that it gives the data without labels.

    >>> valid = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    >>> labels = torch.tensor([0, 0, 1, 1, 1, 0])  # right two times of three
    >>> estimate_prior(valid, labels, torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]))
    tensor([0.8000, 0.2000], dtype=torch.float64)

    Reference: Saerens, Latinne, Decaestecker. Adjusting the Outputs of a Classifier to New a Priori Probabilities.
    Neural Computation 2002. Alexandari, Kundaje, Shrikumar. Maximum Likelihood with Bias-Corrected Calibration Is
    Hard-To-Beat at Label Shift Adaptation. ICML 2020.
    """
    checks.logits_and_target("estimate_prior", probs_valid, labels_valid)
    if probs_unlabelled.dim() != 2 or probs_unlabelled.shape[1] != probs_valid.shape[1] or not len(probs_unlabelled):
        raise ValueError(
            f"probs_unlabelled must be of shape (M, {probs_valid.shape[1]}) with M of 1 or more, "
            f"got {tuple(probs_unlabelled.shape)}"
        )
    valid, unlabelled = (probs.double().clamp_min(SMALLEST).log() for probs in (probs_valid, probs_unlabelled))
    scale, bias = fit_bias_corrected(valid, labels_valid)
    counts = torch.bincount(labels_valid, minlength=valid.shape[1])
    known = counts > 0
    prior = counts[known].double() / len(labels_valid)
    shares = torch.zeros(len(counts), dtype=torch.float64, device=valid.device)
    shares[known] = _most_likely_shares((scale * unlabelled + bias)[:, known].softmax(1), prior)
    return shares


def _most_likely_shares(probs: Tensor, prior: Tensor) -> Tensor:
    """Shares q (C,) under which probabilities (M, C), right for the shares `prior`, have the greatest likelihood."""
    shares = prior
    for _ in range(MOST_STEPS):
        joint = probs * (shares / prior)
        before, shares = shares, (joint / joint.sum(1, keepdim=True)).mean(0)
        if float((shares - before).abs().sum()) <= TOLERANCE:
            break
    return shares


def fit_bias_corrected(logits: Tensor, target: Tensor) -> tuple[float, Tensor]:
    r"""The s and b (C,) at which softmax(s z + b) has the least negative log-likelihood: logits (N, C), target (N,).

    Temperature scaling with a bias for each class, after which the mean probability of each class is its share of
    `target`. A class that `target` lacks keeps the bias 0, as nothing is known of it; the others' have a mean of 0.

    >>> s, b = fit_bias_corrected(torch.tensor([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3), torch.tensor([0, 0, 1, 1, 1, 1]))
    >>> (s * torch.tensor([1.0, 0.0]) + b).softmax(0)  # right two times of three
    tensor([0.6667, 0.3333], dtype=torch.float64)

    Reference: Alexandari, Kundaje, Shrikumar. Maximum Likelihood with Bias-Corrected Calibration Is Hard-To-Beat at
    Label Shift Adaptation. ICML 2020.
    """
    temperature = fit_temperature(logits, target)  # close to the answer, and s is then close to 1
    known = torch.bincount(target, minlength=logits.shape[1]) > 0
    z = logits.detach().double()[:, known] / temperature
    place = (known.cumsum(0) - 1)[target]
    unknowns = torch.zeros(1 + z.shape[1], dtype=torch.float64, device=z.device)
    unknowns[0] = 1
    with torch.enable_grad():
        s_and_b = unknowns.requires_grad_()
        optimizer = torch.optim.LBFGS(
            [s_and_b], max_iter=200, tolerance_grad=1e-8, tolerance_change=1e-12, line_search_fn="strong_wolfe"
        )

        def loss() -> Tensor:
            optimizer.zero_grad()
            value = torch.nn.functional.cross_entropy(s_and_b[0] * z + s_and_b[1:], place)
            value.backward()
            return value

        optimizer.step(loss)
    fitted = s_and_b.detach()
    bias = torch.zeros(logits.shape[1], dtype=torch.float64, device=z.device)
    bias[known] = fitted[1:] - fitted[1:].mean()
    return float(fitted[0]) / temperature, bias
