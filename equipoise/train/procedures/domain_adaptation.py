"""Class-balanced weights, corrected for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ...core import Batch, checks, register
from ..objective import Terms
from ._base import Deferred
from ._meta import Parameters, meta_loss, meta_pool, virtual_step

if TYPE_CHECKING:
    from ..loop import Run


def weight_corrections(
    network: nn.Module,
    loss: Tensor,
    weight: Tensor,
    meta_loss: Callable[[Parameters], Tensor],
    lr: Tensor | float,
    step_size: float = 0.01,
) -> Tensor:
    """What is added to each sample's weight (N,). See `DomainAdaptation`."""
    eps = torch.zeros_like(loss, requires_grad=True)
    ahead = virtual_step(network, ((weight + eps) * loss).sum(), lr)
    (gradient,) = torch.autograd.grad(meta_loss(ahead), eps)
    return -step_size * gradient


@register(
    "domain_adaptation",
    kind="procedure",
    year=2020,
    arxiv="2003.10780",
    neutral={"start": 1.0},
    companions={"weighting": "effective_number(beta=0.9999, start=0.8, normalize='batch')"},
)
class DomainAdaptation(Deferred):
    r"""Adds to each sample's class weight what helps on balanced images: inside a class samples differ too.

    .. math:: \ell = \frac1N \sum_i (w_{y_i} + \epsilon_i) \, \ell_i(\theta), \qquad
              \epsilon_i = -\tau \frac{\partial}{\partial \epsilon_i} \frac1M \sum_{j=1}^M
              \ell_j^{meta}\Bigl(\theta - \eta \nabla_\theta \sum_k (w_{y_k} + \epsilon_k) \, \ell_k(\theta)\Bigr)
              \Big|_{\epsilon = 0}

    The class weights w are the recipe's weighting; it brings along the paper's, by the effective number of samples from
    0.8 of training on.

    The balanced (meta) images come from the task's validation data, its classes drawn alike, anew for each step and as
    many as the batch has; without validation data, from the training data. So this method has seen the validation
    images, and a choice between methods by them favours it.

    Args:
        start: share of training after which it acts; 160 of 200 epochs in the paper.
        step_size: :math:`\tau`, 0.01 as in the released code.

    Differs from the paper: it holds out 10 images of each class as meta images. Weights are not clipped and not
    normalised, as in the released code; its virtual loss is a sum over the batch while the real one is a mean, and so
    are ours. The loss is the recipe's; the paper has cross-entropy, focal loss and LDAM.

    Example:
        >>> network = torch.nn.Linear(1, 2, bias=False)
        >>> network.weight.data.zero_()
        tensor([[0.],
                [0.]])
        >>> loss = torch.nn.functional.cross_entropy(network(torch.ones(2, 1)), torch.tensor([0, 1]), reduction="none")
        >>> meta = lambda p: torch.nn.functional.cross_entropy(p["weight"].T, torch.tensor([0]))  # one image of class 0
        >>> weight_corrections(network, loss, torch.ones(2), meta, lr=1.0)
        tensor([ 0.0050, -0.0050])

    Reference: Jamal, Brown, Yang, Wang, Gong. Rethinking Class-Balanced Methods for Long-Tailed Visual Recognition from
    a Domain Adaptation Perspective. CVPR 2020.
    """

    def __init__(self, start: float = 0.8, step_size: float = 0.01) -> None:
        super().__init__(start)
        self.step_size = checks.above("step_size", step_size, 0)

    def begin(self, run: Run) -> None:
        super().begin(run)
        self.meta = meta_pool(run)

    def forward(self, run: Run, batch: Batch) -> Terms:
        if not self.active:
            return run.terms(batch)
        objective = run.objective
        with run.precision():
            out = run.network.output(batch.inputs)
        loss = objective.loss.per_sample(out.logits, batch.target)
        weight = torch.ones_like(loss) * objective.weights(out, batch.target, run.progress)
        meta = self.meta.draw(run, len(batch.target))
        # the virtual step starts from the same pass as the real one
        eps = weight_corrections(
            run.network, loss, weight, lambda ahead: meta_loss(run, ahead, meta), run.lr, self.step_size
        )
        values = (weight + eps) * loss
        penalty = 0 if objective.penalty is None else objective.penalty(out, batch)
        return Terms(objective.normalized(values, weight) + penalty, values)
