"""Group normalization, with moving averages."""

from __future__ import annotations

from .. import checks
from ..core import register
from ._base import Norm
from ._groups import Block, fit_groups


@register(
    "group",
    kind="norm",
    year=2018,
    arxiv="1803.08494",
    space={"groups": {"values": (8, 16, 32), "scale": "choice"}},
)
class GroupNorm2d(Norm):
    r"""Each example is normalized by itself, over groups of channels.

    .. math:: y = \gamma \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta

    with mean and variance over all positions of one example and C / groups consecutive channels.

    Args:
        num_features: C.
        groups: channel groups; 32 is the paper's. Where it does not divide C, the largest number below that does.
        eps: 1e-5, as in the paper.
        decay: what the moving averages keep at each batch; 0.99 in the authors' code of example weighing.

    `example_weight` is 1 here, which is group norm; below 1 the moving averages have a share in inference, which
    helps a little: `tune_example_weight` finds how much.

    Differs from the paper: it tracks the moving averages of x and x², which training does not use.

    Example:
        >>> norm = GroupNorm2d(2, groups=1)
        >>> norm(torch.tensor([[1.0, 3.0], [10.0, 30.0]])[:, :, None, None]).flatten()
        tensor([-1.0000,  1.0000, -1.0000,  1.0000], grad_fn=...)

    Reference: Wu, He. Group Normalization. ECCV 2018.
    """

    own_example_weight = 1.0

    def __init__(self, num_features: int, groups: int = 32, eps: float = 1e-5, decay: float = 0.99) -> None:
        super().__init__(num_features, eps, decay)
        self.groups = checks.whole("groups", groups, 1)

    def block(self) -> Block:
        return Block(1, fit_groups(self.num_features, self.groups), alone=True)
