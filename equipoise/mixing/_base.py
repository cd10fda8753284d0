"""What all mixings share: a plan for the batch, and a place in the network where it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..core import Batch, signature_repr


class MixPlan(NamedTuple):
    """Who is mixed with whom: `partner` (N,) indices, the paper's `lam` (N,), and the label's share `label_lam`.

    `label_lam` (N,) is the weight of a sample's own label, the partner's label has the rest; None leaves labels alone.
    """

    partner: Tensor
    lam: Tensor
    label_lam: Tensor | None


@dataclass
class Mixed:
    """What was done to a batch; `loss` reads a criterion accordingly. `inputs` is set when the input was mixed."""

    target: Tensor
    plan: MixPlan
    inputs: Tensor | None = None

    @property
    def partner(self) -> Tensor:
        return self.plan.partner

    @property
    def lam(self) -> Tensor:
        return self.plan.lam

    @property
    def label_lam(self) -> Tensor:
        """Weight of each sample's own label; all ones where the mixing leaves labels alone."""
        return torch.ones_like(self.plan.lam) if self.plan.label_lam is None else self.plan.label_lam

    def batch(self, inputs: Tensor) -> Batch:
        """The batch as the objective reads it."""
        if self.plan.label_lam is None:
            return Batch(inputs, self.target)
        return Batch(inputs, self.target, self.target[self.plan.partner], self.plan.label_lam)

    def loss(self, criterion: Any, logits: Tensor) -> Tensor:
        """The mean over the batch of label_lam · ℓ(own label) + (1 − label_lam) · ℓ(partner's label).

        `criterion` is a loss of `equipoise.losses`, or any callable that gives one value for each sample
        (``reduction="none"``).
        """
        per_sample: Callable[[Tensor, Tensor], Tensor] = getattr(criterion, "per_sample", criterion)
        if self.plan.label_lam is None:
            return per_sample(logits, self.target).mean()
        own, theirs = per_sample(logits, self.target), per_sample(logits, self.target[self.partner])
        if own.shape != self.target.shape:
            raise ValueError(
                f"mixed labels need one loss for each sample, but the criterion gave shape {tuple(own.shape)}; "
                'make it with reduction="none", or use a loss of equipoise.losses'
            )
        return (self.label_lam * own + (1 - self.label_lam) * theirs).mean()


class Mix(nn.Module):
    """Mixes samples of a batch. A subclass writes `plan` and, where it is not a weighted sum, `blend`.

    `site` names the part of the network after which it acts ("input", "stem", "stage1", …). `generator` is where
    random numbers come from; None means PyTorch's global one. A mixing that may end before training does has a `stop`
    below 1 and heeds `progress`, the share of training that is done: our trainer sets it at every step, in a loop of
    your own you do.
    """

    site: str = "input"
    generator: torch.Generator | None = None
    stop: float = 1.0
    progress: Tensor | float = 0.0

    def plan(self, target: Tensor) -> MixPlan:
        """target (N,) -> who is mixed with whom, and how much."""
        raise NotImplementedError

    def blend(self, x: Tensor, plan: MixPlan) -> Tensor:
        """Carry the plan out on `x` (N, …): lam · x + (1 − lam) · x[partner]. Gradients reach the partner."""
        return torch.lerp(x[plan.partner], x, per_sample(plan.lam, x))

    def forward(self, x: Tensor, target: Tensor) -> Mixed:
        """Mix at the input: ``mixed = mix(x, target)``, then ``mixed.loss(criterion, network(mixed.inputs))``."""
        plan = self.plan(target) if self.training else _untouched(target)
        return Mixed(target, plan, self.blend(x, plan) if self.training else x)

    @contextmanager
    def at(self, module: nn.Module, target: Tensor) -> Iterator[Mixed]:
        """Within the block, what `module` puts out is mixed, as long as `module` is in training mode."""
        if not module.training:
            yield Mixed(target, _untouched(target))
            return
        mixed = Mixed(target, self.plan(target))
        with self.carried_out(module, mixed.plan):
            yield mixed

    @contextmanager
    def carried_out(self, module: nn.Module, plan: MixPlan) -> Iterator[None]:
        """Within the block, what `module` puts out is mixed by a plan that was made before."""
        handle = module.register_forward_hook(lambda module, args, out: self.blend(out, plan))
        try:
            yield
        finally:
            handle.remove()

    def extra_repr(self) -> str:
        return signature_repr(self)


def _untouched(target: Tensor) -> MixPlan:
    """Everyone is their own partner: whatever lam means to a mixing, nothing changes."""
    n, device = len(target), target.device
    return MixPlan(torch.arange(n, device=device), torch.ones(n, dtype=torch.float32, device=device), None)


def beta_sample(alpha: float, n: int, device: torch.device, generator: torch.Generator | None) -> Tensor:
    """n draws of Beta(alpha, alpha), float32, from `generator` on `device`."""
    # Gamma(alpha) = Gamma(alpha + 1) · U^(1/alpha), and its log where the power would underflow for small alpha
    shape = torch.full((2, n), alpha + 1.0, dtype=torch.float32, device=device)
    gamma = torch._standard_gamma(shape, generator=generator)
    minus_log_u = torch.empty_like(shape).exponential_(generator=generator)
    return (gamma[0].log() - gamma[1].log() + (minus_log_u[1] - minus_log_u[0]) / alpha).sigmoid()


def random_partner(target: Tensor, generator: torch.Generator | None) -> Tensor:
    """A permutation of the batch (N,): everyone is mixed in once."""
    return torch.randperm(len(target), device=target.device, generator=generator)


def per_sample(lam: Tensor, like: Tensor) -> Tensor:
    """lam (N,) shaped to multiply `like` (N, …), in its dtype."""
    return lam.to(like.dtype).view(-1, *[1] * (like.dim() - 1))
