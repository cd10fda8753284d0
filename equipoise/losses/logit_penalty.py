"""Logit penalty."""

from __future__ import annotations

from torch import Tensor

from ..core import Batch, Output, checks, full_precision, register, signature_repr

__all__ = ["LogitPenalty", "logit_penalty"]


def logit_penalty(logits: Tensor, beta: float = 6e-4, half: bool = False) -> Tensor:
    """The term added to each sample's loss: logits (N, C) -> (N,). See `LogitPenalty`."""
    return (beta / 2 if half else beta) * full_precision(logits).square().sum(1)


@register(
    "logit_penalty",
    kind="penalty",
    year=2021,
    arxiv="2010.16402",
    neutral={"beta": 0.0},
    space={"beta": {"values": (1.5e-4, 6e-4, 2.4e-3), "scale": "log"}},
)
class LogitPenalty:
    r"""Adds the squared length of the logits to the loss, so that they stay small.

    .. math:: \frac{\beta}{N} \sum_{i=1}^{N} \lVert z_i \rVert^2

    Args:
        beta: strength; 0 adds nothing. 6e-4 is what the paper selected on ImageNet, with the released code, which
            has a factor 1/2: ``half=True`` repeats that run. On CIFAR it selected 10^-2.83.
        half: the released code's factor 1/2; the paper's formula has none.

    Differs from the paper: nothing known with the defaults.

    Example:
        >>> from equipoise.core import Batch, Output
        >>> batch = Batch(torch.zeros(1, 3), torch.tensor([0]))
        >>> LogitPenalty(beta=0.01)(Output(torch.tensor([[3.0, 4.0]])), batch)
        tensor(0.2500)

    Reference: Kornblith, Chen, Lee, Norouzi. Why Do Better Loss Functions Lead to Less Transferable Features?
    NeurIPS 2021.
    """

    def __init__(self, beta: float = 6e-4, half: bool = False) -> None:
        self.beta = checks.at_least("beta", beta, 0)
        self.half = checks.truth("half", half)

    def __call__(self, out: Output, batch: Batch) -> Tensor:
        return logit_penalty(out.logits, self.beta, self.half).mean()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({signature_repr(self)})"
