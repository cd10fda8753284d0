"""Networks that learn side by side, and from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor

from ...core import Batch, Output, checks, full_precision, register
from ..objective import Terms
from ..streams import derived_seed
from ._base import Procedure

if TYPE_CHECKING:
    from ..loop import Run

MOST_NETWORKS = 64


def divergence(logits: Tensor, teacher: Tensor) -> Tensor:
    """logits (N, C), teacher (N, C) -> the mean over N of KL(softmax(teacher) ‖ softmax(logits))."""
    said, heard = (full_precision(z).log_softmax(1) for z in (teacher.detach(), logits))
    return F.kl_div(heard, said, reduction="batchmean", log_target=True)


@register(
    "mutual",
    kind="procedure",
    year=2018,
    arxiv="1706.00384",
    neutral={"weight": 0.0},
    space={"weight": {"values": (0.5, 1.0, 2.0), "scale": "log"}},
)
class MutualLearning(Procedure):
    r"""Trains several networks on the same batches; each also learns what the others say of every image.

    .. math:: L_k = \frac1N \sum_n \ell(z_{k,n}, y_n) + \frac{w}{K - 1} \sum_{j \ne k} \frac1N \sum_n
              \mathrm{KL}(p_{j,n} \,\|\, p_{k,n}), \qquad p = \mathrm{softmax}(z)

    The K networks start from weights of their own and see the same images, augmented and mixed alike; no gradient flows
    into :math:`p_j`. The first, which starts as it would alone, is the one that is kept: it has the size and the speed
    of a network trained alone, the training costs K times as much.

    Args:
        networks: K, those that learn together.
        weight: w; at 0 the kept network is trained as if it were alone.

    Differs from the paper: all networks move at the same time, by what they said before; the paper moves one after the
    other. Where a loss changes its logits for training (balanced softmax, LDAM), p is what the network would predict.
    Only the first network has a moving average of its weights, where the plan asks for one. With weights from a file
    all start from these and differ in a fresh head alone.

    Example:
        >>> import torch
        >>> undecided, teacher = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.25, 0.75]]).log()
        >>> divergence(undecided, teacher)  # 1/4 log(1/2) + 3/4 log(3/2)
        tensor(0.1308)

    Reference: Zhang, Xiang, Hospedales, Lu. Deep Mutual Learning. CVPR 2018.
    """

    takes_mix = True
    in_graphs = True

    def __init__(self, networks: int = 2, weight: float = 1.0) -> None:
        super().__init__()
        self.networks = checks.whole("networks", networks, 2, MOST_NETWORKS)
        self.weight = checks.at_least("weight", weight, 0)

    def begin(self, run: Run) -> None:
        super().begin(run)
        plan = replace(run.plan, ema=None)  # nobody predicts with them
        self.peers = [
            type(run)(
                replace(run.recipe, procedure=None, plan=plan, seed=derived_seed(run.recipe.seed, f"peer {k}")),
                run.task,
                run.device,
                layout=run.layout,
            )
            for k in range(1, self.networks)
        ]

    def start_epoch(self, run: Run, number: int) -> None:
        for peer in self.peers:
            peer.network.train()

    def forward(self, run: Run, batch: Batch) -> Terms:
        batch = run.mixed(batch)
        for peer in self.peers:
            peer.mix_plan = run.mix_plan
            peer.rate.set(run.lr)
        mine, *theirs = self.taught(run, [member.output(batch) for member in run.members], batch, run.progress)
        for peer, terms in zip(self.peers, theirs, strict=True):
            peer.gradients.add(terms)
            peer.update(peer.gradients.take())
        return mine

    def taught(self, run: Run, outs: Sequence[Output], batch: Batch, progress: Tensor) -> list[Terms]:
        """What each network minimises, from the outputs of all, the kept one's first."""
        objectives = [member.objective for member in run.members]  # each has its own state and random numbers
        logits = [own.loss.link(out.logits) for own, out in zip(objectives, outs, strict=True)]
        share = self.weight / (len(outs) - 1)
        all_terms = [own(out, batch, progress) for own, out in zip(objectives, outs, strict=True)]
        return [
            terms._replace(total=terms.total + share * sum(divergence(z, other) for other in logits if other is not z))
            for z, terms in zip(logits, all_terms, strict=True)
        ]
