"""Meta-weight-net."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ...core import Batch, checks, register
from ..objective import Terms
from ._base import Procedure
from ._meta import meta_loss, meta_pool, virtual_step

if TYPE_CHECKING:
    from ..loop import Run


def meta_weights(weight_net: nn.Module, loss: Tensor) -> Tensor:
    """Weights (N,) that sum to 1 from each sample's loss (N,). See `MetaWeightNet`."""
    weights = weight_net(loss.detach()[:, None]).squeeze(1)
    return weights / weights.sum()


@register("meta_weight_net", kind="procedure", year=2019, arxiv="1902.07379")
class MetaWeightNet(Procedure):
    r"""Weighs each sample by a function of its loss, a small network that learns what helps on balanced images.

    .. math:: \hat\theta(w) = \theta - \eta \nabla_\theta \sum_i V_i(w) \, \ell_i(\theta), \qquad
              w \leftarrow w - \eta_w \nabla_w \frac1M \sum_{j=1}^M \ell_j^{meta}(\hat\theta(w)), \qquad
              V_i = \frac{v(\ell_i; w)}{\sum_k v(\ell_k; w)}

    with v a network of one hidden layer that ends in a sigmoid. Then :math:`\theta` takes its real step on
    :math:`\sum_i V_i \ell_i` with the new w.

    The balanced (meta) images come from the task's validation data, its classes drawn alike, anew for each step and as
    many as the batch has; without validation data, from the training data. So this method has seen the validation
    images, and a choice between methods by them favours it.

    Args:
        hidden: units of the hidden layer, 100 in the paper.
        lr: learning rate of the small network, 1e-5 as in the released code for imbalanced data; momentum and
            weight decay are those of the plan, as there.

    Differs from the paper: it holds out 10 images of each class; here it is the imbalanced validation set, so that
    images of a rare class come often. The network's norms use the meta batch's statistics in its pass, and keep no
    trace of it. The loss :math:`\ell_i` is the recipe's, its weighting included; the meta loss has no weights.

    Example:
        >>> weight_net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sigmoid())
        >>> weight_net[0].weight.data, weight_net[0].bias.data = torch.ones(1, 1), torch.zeros(1)
        >>> meta_weights(weight_net, torch.tensor([0.0, 4.0])).detach()
        tensor([0.3374, 0.6626])

    Reference: Shu, Xie, Yi, Zhao, Zhou, Xu, Meng. Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting.
    NeurIPS 2019.
    """

    in_graphs = True

    def __init__(self, hidden: int = 100, lr: float = 1e-5) -> None:
        super().__init__()
        self.hidden = checks.whole("hidden", hidden, 1, 1_000_000)
        self.lr = checks.above("lr", lr, 0)

    def begin(self, run: Run) -> None:
        super().begin(run)
        with run.streams.initial_weights():
            weight_net = nn.Sequential(nn.Linear(1, self.hidden), nn.ReLU(), nn.Linear(self.hidden, 1), nn.Sigmoid())
        self.weight_net = weight_net.to(run.device)
        self.velocity = copy.deepcopy(self.weight_net).requires_grad_(False)
        for velocity in self.velocity.parameters():
            velocity.zero_()
        self.meta = meta_pool(run)

    def forward(self, run: Run, batch: Batch) -> Terms:
        with run.precision():
            out = run.network.output(batch.inputs)
        terms = run.objective(out, batch, run.progress)
        # the virtual step starts from the same pass as the real one
        virtual_loss = (meta_weights(self.weight_net, terms.per_sample) * terms.per_sample).sum()
        ahead = virtual_step(run.network, virtual_loss, run.lr)
        self._descend(run, meta_loss(run, ahead, self.meta.draw(run, len(batch.target))))
        weights = meta_weights(self.weight_net, terms.per_sample).detach() * len(batch.target)  # 1 on average
        weighed = weights * terms.per_sample
        return Terms(terms.total + weighed.mean() - terms.per_sample.mean(), weighed)  # a penalty stays in the total

    def _descend(self, run: Run, loss: Tensor) -> None:
        """A step of the small network as `torch.optim.SGD` takes it, with its velocity where a checkpoint sees it."""
        momentum, decay = run.plan.momentum, float(run.plan.weight_decay or 0)
        weights = list(self.weight_net.parameters())
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, velocity, gradient in zip(weights, self.velocity.parameters(), gradients, strict=True):
                gradient = gradient + decay * weight
                velocity.mul_(momentum).add_(gradient)
                weight.sub_(self.lr * (gradient + momentum * velocity if run.plan.nesterov else velocity))
