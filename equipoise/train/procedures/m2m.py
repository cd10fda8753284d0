"""Major-to-minor translation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core import Batch, checks, full_precision, register
from ...models.heads.cosine import unit
from ..objective import Terms
from ._base import Deferred

if TYPE_CHECKING:
    from ..loop import Run

Classifier = Callable[[Tensor], Tensor]  # pixels (N, c, h, w) from 0 to 1 -> logits (N, C)


def seed_probability(seed_count: Tensor, count: Tensor, beta: float = 0.999) -> Tensor:
    """How welcome an image of a class of `seed_count` is as the seed for a class of `count`. See `MajorToMinor`."""
    return 1 - beta ** (seed_count - count).clamp_min(0)


def translate(
    pixels: Tensor,
    target: Tensor,
    seed_class: Tensor,
    g: Classifier,
    f: Classifier,
    lam: float,
    size: float,
    steps: int,
) -> Tensor:
    """Move `pixels` (N, c, h, w) towards class `target` in the eyes of g and away from `seed_class` in those of f."""
    for _ in range(steps):
        pixels = pixels.detach().requires_grad_(True)
        cost = (
            F.cross_entropy(g(pixels), target, reduction="sum") + lam * f(pixels).gather(1, seed_class[:, None]).sum()
        )
        (gradient,) = torch.autograd.grad(cost, pixels)
        pixels = (pixels - size * unit(gradient.flatten(1)).view_as(pixels)).clamp(0, 1)
    return pixels.detach()


@register(
    "m2m",
    kind="procedure",
    year=2020,
    arxiv="2004.00431",
    neutral={"start": 1.0},
    companions={"sampler": "class_balanced(start=0.8)"},
)
class MajorToMinor(Deferred):
    r"""Replaces images of rare classes by images of frequent ones, changed until a second network takes them for rare.

    .. math:: x^* = \arg\min_{x = x_0 + \delta} \; \ell(g(x), y) + \lambda f_{y_0}(x), \qquad
              P(x_0 \mid y) \propto 1 - \beta^{(N_{y_0} - N_y)^+}

    An image of class y is replaced with probability :math:`1 - N_y / N_{max}`. The seed :math:`x_0` comes from the same
    batch; the minimum is sought in normalised gradient steps from a noisy seed. The result is taken if g gives class y
    at least the probability gamma, and then with the probability :math:`1 - \beta^{(\cdot)^+}`; else the image stays.
    It goes with class-balanced sampling from the same `start` (it brings that along for 0.8).

    Args:
        class_counts: training images of each class, N_c.
        start: share of training after which it acts; 160 of 200 epochs in the paper.
        beta: how much larger the seed's class must be; 0.999 in the paper, whose classes have up to 5,000 images. Where
            they have a hundred, hardly a seed is welcome with it: :math:`1 - 0.999^{100}` is 0.1.
        lam: weight of the seed class's logit in the network f that is trained; 0.5 in the paper for CIFAR-10.
        gamma: what g must be sure of; 0.9 in the script for CIFAR-10, the released default is 0.99.
        steps: number of gradient steps, 10.
        step_size: their length, in pixels on the scale 0 to 1; 0.1.
        noise: length of the seed's first disturbance, 0.5.

    Differs from the paper: g is the run's own network as it was at `start`, trained plainly until then; the paper's is
    another network, trained plainly to the end. The disturbance has its length for each image; the released code shares
    it out over the batch. The paper chooses its best epoch on a tenth of the test set; no such choice is made here.

    Example:
        >>> seed_probability(torch.tensor([5000.0, 500.0, 50.0]), torch.tensor(50.0))
        tensor([0.9929, 0.3625, 0.0000])

    Reference: Kim, Jeong, Shin. M2m: Imbalanced Classification via Major-to-Minor Translation. CVPR 2020.
    """

    takes_mix = True
    class_counts: Tensor

    def __init__(
        self,
        class_counts: checks.Counts,
        start: float = 0.8,
        beta: float = 0.999,
        lam: float = 0.5,
        gamma: float = 0.9,
        steps: int = 10,
        step_size: float = 0.1,
        noise: float = 0.5,
    ) -> None:
        super().__init__(start)
        self.register_buffer("class_counts", checks.counts(class_counts).long(), persistent=False)
        self.beta = checks.between("beta", beta, 0, 1)
        self.lam = checks.at_least("lam", lam, 0)
        self.gamma = checks.between("gamma", gamma, 0, 1)
        self.steps = checks.whole("steps", steps, 0, 10_000)
        self.step_size = checks.above("step_size", step_size, 0)
        self.noise = checks.at_least("noise", noise, 0)

    def begin(self, run: Run) -> None:
        super().begin(run)
        self.g = copy.deepcopy(run.network).requires_grad_(False).eval()

    def switch(self, run: Run) -> None:
        self.g.load_state_dict(run.evaluated.state_dict())

    def forward(self, run: Run, batch: Batch) -> Terms:
        if not self.active:
            return run.terms(batch)
        run.network.eval()
        inputs = self.replaced(run, batch)
        run.network.train()
        return run.terms(batch._replace(inputs=inputs))

    def replaced(self, run: Run, batch: Batch) -> Tensor:
        """The inputs of the batch, those of rare classes replaced where that worked."""
        (inputs, target, *_), stream = batch, run.streams["mix"]
        mean, std = run.mean[:, None, None], run.std[:, None, None]

        def logits_of(network: torch.nn.Module) -> Classifier:
            def classify(pixels: Tensor) -> Tensor:
                with run.precision():
                    logits = network((pixels - mean) / std)
                return run.objective.loss.link(full_precision(logits))

            return classify

        # all images are translated and some taken: a number that is not known beforehand would wait for the device
        count = self.class_counts[target].float()
        welcome = seed_probability(count, count[:, None], self.beta)  # (N, N), of column for row
        seed = (welcome / torch.empty_like(welcome).exponential_(generator=stream)).argmax(1)  # a draw for each row
        disturbance = self.noise * unit(_normal_like(inputs.flatten(1), stream)).view_as(inputs)
        pixels = ((inputs * std + mean)[seed] + disturbance).clamp(0, 1)
        g, f = logits_of(self.g), logits_of(run.network)
        pixels = translate(pixels, target, target[seed], g, f, self.lam, self.step_size, self.steps)
        with torch.no_grad():
            sure = g(pixels).softmax(1).gather(1, target[:, None]).squeeze(1) >= self.gamma
        wanted, luck = torch.rand(2, len(target), dtype=torch.float32, device=target.device, generator=stream)
        rare = wanted >= count / self.class_counts.max()
        taken = rare & sure & (luck < welcome.gather(1, seed[:, None]).squeeze(1))
        chosen = torch.where(taken[:, None, None, None], (pixels - mean) / std, inputs)
        return chosen.contiguous(memory_format=torch.channels_last)


def _normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(x.shape, dtype=x.dtype, device=x.device, generator=generator)
