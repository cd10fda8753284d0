"""Finding the example weight on validation data.

Only the layers before the first norm are common to two weights α, so a curve over 22 of them would cost 22 passes. But
logits change smoothly with α. The network runs at five of them, the logits in between are interpolated for each
example (cubic, in log(α + 0.05), where the curve bends evenly), and the metric is taken of those. One more pass at the
best α says what it really gives, and one without weighing, where no α stands for that, what it is compared with.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core import checks
from ..kernels.modes import in_mode
from .example_weight import example_weight

METRICS = ("accuracy", "loss", "balanced_accuracy")
ALPHAS = (
    *(0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2),
    *(0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
_NODES = 5
_DEGREE = 3

Progress = Callable[[int, int | None], None]


class TunedWeight(float):
    """The α that was found: a number, which also tells how it was chosen.

    `score` is what it gives and `usual` what the network gives without weighing, both measured. `curve` holds
    (α, score) for all that were compared; `measured` are the α at which the network ran, the others are interpolated.
    """

    metric: str
    score: float
    usual: float
    curve: tuple[tuple[float, float], ...]
    measured: tuple[float, ...]


def show_progress(done: int, total: int | None) -> None:
    """A line on stderr that counts the batches."""
    end = "\n" if done == total else ""
    print(f"\rexample weight: batch {done}" + (f" of {total}" if total else ""), end=end, file=sys.stderr, flush=True)


def tune_example_weight(
    network: nn.Module,
    batches: Iterable[Sequence[Tensor]],
    metric: str = "accuracy",
    *,
    alphas: Sequence[float] = ALPHAS,
    progress: Progress | None = show_progress,
) -> TunedWeight:
    """The example weight α with the best `metric` on validation data. The network is left as it was.

    Args:
        network: any classifier with norms that `set_example_weight` can serve; `network(inputs)` gives logits.
        batches: (inputs, target) pairs, such as a `DataLoader`. A generator, which cannot be run through twice, limits
            the choice to the five α that are measured.
        metric: "accuracy", "balanced_accuracy" (mean recall of the classes) or "loss" (cross-entropy). Their best α
            can differ a lot.
        alphas: what to choose from.
        progress: called with the batches done and their number, if known; None for silence.

    >>> network = nn.Sequential(nn.BatchNorm2d(2), nn.Flatten())
    >>> alpha = tune_example_weight(network, [(torch.randn(8, 2, 1, 1), torch.zeros(8).long())], progress=None)
    >>> 0 <= alpha <= 1, len(alpha.curve), len(alpha.measured) <= 6
    (True, 22, True)
    """
    checks.one_of("metric", metric, METRICS)
    grid = torch.tensor(sorted({checks.between("alpha", a, 0, 1) for a in alphas}), dtype=torch.float64)
    usual = _own_weight(network)
    nodes = _nodes(grid)
    measured = nodes.tolist()
    apart = [] if usual in measured else [usual]
    weights = torch.block_diag(_interpolation(nodes, grid), *torch.ones(len(apart), 1, 1, dtype=grid.dtype))
    with in_mode(network, training=False), torch.no_grad():
        scores = _score(network, batches, [*measured, *apart], weights, metric, progress)
        unweighed, scores = scores[-1] if apart else scores[grid == usual], scores[: len(grid)]
        best = _best(grid, scores, metric, usual or 0.0)
        if grid[best] not in nodes and iter(batches) is not batches:
            again = _score(network, batches, [grid[best].item()], torch.ones(1, 1), metric, progress)
            scores[best] = again[0]
            measured = sorted([*measured, grid[best].item()])
    sure = torch.isin(grid, torch.tensor(measured, dtype=grid.dtype))
    best = _best(grid[sure], scores[sure], metric, usual or 0.0)
    tuned = TunedWeight(grid[sure][best].item())
    tuned.metric, tuned.score, tuned.measured = metric, scores[sure][best].item(), tuple(measured)
    tuned.usual = unweighed.item()
    tuned.curve = tuple(zip(grid.tolist(), scores.tolist(), strict=True))
    return tuned


def _own_weight(network: nn.Module) -> float | None:
    """The example weight at which the network infers as without weighing; None if there is no such weight."""
    own = [getattr(module, "own_example_weight", 0.0) for module in network.modules()]
    return None if None in own else max(own)


def _score(
    network: nn.Module,
    batches: Iterable[Sequence[Tensor]],
    nodes: Sequence[float | None],
    weights: Tensor,
    metric: str,
    progress: Progress | None,
) -> Tensor:
    """The metric (A,) of logits that are `weights` (A, nodes) times those at `nodes`; None is no weighing."""
    total = len(batches) if isinstance(batches, Sized) else None
    sums: Tensor | float = 0.0
    sizes: Tensor | float = 0.0
    for done, (inputs, target) in enumerate(_on_device(network, batches), 1):
        at_nodes = torch.stack([_logits(network, inputs, alpha) for alpha in nodes])
        logits = torch.einsum("an,nbc->abc", weights.to(at_nodes), at_nodes)
        classes = F.one_hot(target, logits.shape[2]).to(logits.dtype)
        if metric == "loss":
            values = -logits.log_softmax(2)[:, torch.arange(len(target)), target]
        else:
            values = (logits.argmax(2) == target).to(logits.dtype)
        sums = sums + values @ classes  # (A, C)
        sizes = sizes + classes.sum(0)
        if progress is not None:
            progress(done, total)
    if not isinstance(sums, Tensor) or not isinstance(sizes, Tensor):
        raise ValueError("batches is empty; the example weight is chosen on (inputs, target) pairs")
    if metric == "balanced_accuracy":
        return (sums / sizes)[:, sizes > 0].mean(1).double().cpu()
    return (sums.sum(1) / sizes.sum()).double().cpu()


def _on_device(network: nn.Module, batches: Iterable[Sequence[Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    device = next(iter([*network.parameters(), *network.buffers()])).device
    for inputs, target, *_ in batches:
        yield inputs.to(device, non_blocking=True), target.to(device, non_blocking=True)


def _logits(network: nn.Module, inputs: Tensor, alpha: float | None) -> Tensor:
    with example_weight(network, alpha):
        return network(inputs).float()


def _best(grid: Tensor, scores: Tensor, metric: str, usual: float) -> int:
    """Where the best score is; of equal ones, nearest to usual inference."""
    best = scores.min() if metric == "loss" else scores.max()
    return int(torch.where(scores == best, (grid - usual).abs(), torch.inf).argmin())


def _nodes(grid: Tensor) -> Tensor:
    """The members of `grid` nearest to `_NODES` even steps of log(α + 0.05), its ends among them."""
    u = (grid + 0.05).log()
    return grid[torch.unique((torch.linspace(u[0], u[-1], _NODES, dtype=u.dtype)[:, None] - u).abs().argmin(1))]


def _interpolation(nodes: Tensor, grid: Tensor) -> Tensor:
    """Weights (A, nodes) of local cubic interpolation in log(α + 0.05)."""
    u, at = (nodes + 0.05).log(), (grid + 0.05).log()
    width = min(_DEGREE + 1, len(nodes))
    weights = torch.zeros(len(grid), len(nodes), dtype=u.dtype)
    for row, x in enumerate(at):
        start = min(max(int(torch.searchsorted(u, x)) - width // 2, 0), len(u) - width)
        for j in range(start, start + width):
            others = [k for k in range(start, start + width) if k != j]
            weights[row, j] = ((x - u[others]) / (u[j] - u[others])).prod()
    return weights
