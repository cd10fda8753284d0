"""The bilateral-branch network."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ...core import Batch, EquipoiseError, Output, checks, register
from ...models import HeadFactory, Network, TorchNetwork
from ...models._base import kaiming_
from ..objective import Terms
from ._base import Procedure
from ._pool import Pool

if TYPE_CHECKING:
    from ..loop import Run


def branch_share(progress: Tensor) -> Tensor:
    """How much the conventional branch counts, 1 at the beginning and 0 at the end. See `BilateralBranch`."""
    return 1 - progress**2


def reversed_shares(class_counts: checks.Counts) -> Tensor:
    """How often each class is drawn for the other branch (C,); sums to 1. See `BilateralBranch`."""
    n = checks.counts(class_counts)
    shares = (n.max() / n).where(n > 0, 0.0)
    return (shares / shares.sum()).float()


def bilateral_map(conventional: Tensor, rebalancing: Tensor, share: Tensor | float) -> Tensor:
    """Two feature maps (N, c, …) as one (N, 2c, …), each by its share; at 1/2 plain concatenation."""
    return 2 * torch.cat([share * conventional, (1 - share) * rebalancing], dim=1)


@register("bbn", kind="procedure", year=2020, arxiv="1912.02413")
class BilateralBranch(Procedure):
    r"""Trains two branches on a common trunk: one sees the data as it is, one mostly rare classes, which gains weight.

    .. math:: \ell = \alpha \, \ell(z, y_c) + (1 - \alpha) \, \ell(z, y_r), \qquad
              z = W \, [2 \alpha f_c(x_c),\; 2 (1 - \alpha) f_r(x_r)] + b, \qquad \alpha = 1 - t^2

    with t from 0 to 1 the share of training that is done. :math:`x_c` comes from the recipe's sampler, :math:`x_r` is
    of class c with probability proportional to :math:`N_{max} / N_c`. The branches are the network's last block, twice;
    the head is made anew for twice the features. At test time both see the same image, and z has plain concatenation.

    Args:
        class_counts: training images of each class, N_c.

    Differs from the paper: t moves with every step, not with every epoch. For 90 and 180 epochs the released code stops
    at t = 0.9. In a network whose last stage is not made of blocks (`cnn_small`) the branches are its last convolution
    with norm and ReLU. Loss, weighting and penalty are the recipe's; the paper has cross-entropy alone.

    Example:
        >>> reversed_shares([50, 10])
        tensor([0.1667, 0.8333])
        >>> branch_share(torch.tensor([0.0, 0.5, 1.0]))
        tensor([1.0000, 0.7500, 0.0000])

    Reference: Zhou, Cui, Wei, Chen. BBN: Bilateral-Branch Network with Cumulative Learning for Long-Tailed Visual
    Recognition. CVPR 2020.
    """

    in_graphs = True
    class_counts: Tensor

    def __init__(self, class_counts: checks.Counts) -> None:
        super().__init__()
        self.register_buffer("class_counts", checks.counts(class_counts).long(), persistent=False)

    def adapt(self, network: Network, make_head: HeadFactory) -> Network:
        if isinstance(network, TorchNetwork):
            raise EquipoiseError(
                "bbn needs to know the network's last block; choose a network without a library's name"
            )
        # a norm of the features, as DenseNet's, knows one branch only
        if type(network).features_of is not Network.features_of:
            raise EquipoiseError(
                "bbn needs features that are the mean of a feature map, which those of "
                f"{type(network).__name__} are not; choose another network"
            )
        name = network.stages[-1]
        network.set_submodule(name, TwoBranches(network.get_submodule(name)))
        network.feature_dim *= 2
        network.head = make_head(network.feature_dim, len(self.class_counts))
        return network

    def begin(self, run: Run) -> None:
        super().begin(run)
        self.pool = Pool(run.task.train, reversed_shares(self.class_counts))

    def forward(self, run: Run, batch: Batch) -> Terms:
        rare = self.pool.draw(run, len(batch.target))
        share = branch_share(run.progress)
        with run.precision():
            network = run.network
            *trunk, last = (network.get_submodule(name) for name in network.stages)
            shared = nn.Sequential(*trunk, last.shared)
            # one after the other: each branch's batch has norm statistics of its own in the trunk, as in the paper
            conventional = last.conventional(shared(batch.inputs))
            rebalancing = last.rebalancing(shared(rare.inputs))
            feature_map = bilateral_map(conventional, rebalancing, share)
            features = network.features_of(feature_map)
            out = Output(network.head(features), features, feature_map)
        return run.objective(out, Batch(batch.inputs, batch.target, rare.target, share), run.progress)


class TwoBranches(nn.Module):
    """A stage whose last block is there twice; gives the feature maps of both, one after the other."""

    def __init__(self, stage: nn.Module) -> None:
        super().__init__()
        parts = list(stage) if isinstance(stage, nn.Sequential) else [stage]
        # a norm or a ReLU at the end of the stage belongs to the convolution before it
        last = max(i for i, part in enumerate(parts) if any(isinstance(m, nn.Conv2d) for m in part.modules()))
        self.shared = nn.Sequential(*parts[:last])
        self.conventional = nn.Sequential(*parts[last:])
        self.rebalancing = copy.deepcopy(self.conventional)
        kaiming_(self.rebalancing)

    def forward(self, x: Tensor) -> Tensor:
        x = self.shared(x)
        return torch.cat([self.conventional(x), self.rebalancing(x)], dim=1)
