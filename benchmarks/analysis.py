"""Time of the analysis against straightforward implementations, in one run.

python benchmarks/analysis.py                     # every subject
python benchmarks/analysis.py separation cka      # some

Contenders take turns; what is printed is the median of each, with the number of repeats. Seconds are those of the
processor with one thread, not of the clock, so that other work on the machine weighs little.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits
from torch import Tensor

from equipoise.analysis import class_separation, expected_calibration_error, feature_deviation, linear_cka, linear_probe
from equipoise.analysis.representations.transfer import LAMBDAS, _descend, _for_given_features, _samples
from equipoise.data import Task, load_task, long_tailed_counts
from equipoise.study.run.watch_classes import Progress
from equipoise.train import Fitting, Recipe, Run

SIZES = (10_000, 25_000, 50_000)
WIDTH = 512
PAIRWISE = 10_000  # samples of the N × N implementations


def in_turns(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median processor seconds of each call, measured in turns after one round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for lap in range(repeats + 1):
        for name, call in calls.items():
            start = time.process_time()
            call()
            if lap:
                times[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def show(title: str, times: dict[str, float], repeats: int) -> None:
    print(f"\n{title} (median of {repeats})")
    for name, seconds in times.items():
        print(f"  {name:44s} {seconds:9.3f} s", flush=True)


def show_ratios(times: dict[str, float], pairwise: str) -> None:
    """How the largest size compares with the pairwise way, and time per sample, which is constant if linear."""
    largest = times[f"ours, N = {SIZES[-1]:,}"]
    print(f"  {pairwise} takes {times[pairwise] / largest:.1f} times as long as ours at N = {SIZES[-1]:,}")
    each = ", ".join(f"{times[f'ours, N = {n:,}'] / n * 1e6:.2f} µs at {n:,}" for n in SIZES)
    print(f"  ours for each sample: {each}", flush=True)


# -- class separation ------------------------------------------------------------------------------------------------


def separation_by_pairs(x: Tensor, labels: Tensor) -> Tensor:
    """All N × N cosine distances, averaged over the pairs of samples of each pair of classes."""
    unit = F.normalize(x.double(), dim=1)
    member = F.one_hot(labels).double()
    share = member / member.sum(dim=0)
    mean = share.T @ (1 - unit @ unit.T) @ share
    return 1 - mean.diagonal().mean() / mean.mean()


def separation(repeats: int = 5) -> None:
    x, y = torch.randn(SIZES[-1], WIDTH), torch.randint(100, (SIZES[-1],))
    name = f"N × N, N = {PAIRWISE:,}"
    calls = {name: lambda: separation_by_pairs(x[:PAIRWISE], y[:PAIRWISE])}
    calls |= {f"ours, N = {n:,}": lambda n=n: class_separation(x[:n], y[:n]) for n in SIZES}
    torch.testing.assert_close(separation_by_pairs(x[:2000], y[:2000]), class_separation(x[:2000], y[:2000]))
    times = in_turns(calls, repeats)
    show(f"class separation by cosine, d = {WIDTH}, 100 classes", times, repeats)
    show_ratios(times, name)


# -- linear CKA ------------------------------------------------------------------------------------------------------


def centred_by_means(kernel: Tensor) -> Tensor:
    return kernel - kernel.mean(dim=0) - kernel.mean(dim=1, keepdim=True) + kernel.mean()


def centred_by_matrix(kernel: Tensor) -> Tensor:
    """HKH, as the definition has it."""
    h = torch.eye(len(kernel), dtype=kernel.dtype) - 1 / len(kernel)
    return h @ kernel @ h


def cka_by_kernels(x: Tensor, y: Tensor, centre: Callable[[Tensor], Tensor]) -> Tensor:
    of_x, of_y = centre(x @ x.T), centre(y @ y.T)
    return (of_x * of_y).sum() / ((of_x * of_x).sum() * (of_y * of_y).sum()).sqrt()


def cka(repeats: int = 3) -> None:
    x = torch.randn(SIZES[-1], WIDTH)
    y = x @ torch.randn(WIDTH, WIDTH) / WIDTH**0.5 + torch.randn(SIZES[-1], WIDTH)
    small, doubles = 2_500, (x[:PAIRWISE].double(), y[:PAIRWISE].double())
    by_means = f"N × N centred by means, N = {PAIRWISE:,}"
    calls = {
        by_means: lambda: cka_by_kernels(*doubles, centred_by_means),
        f"the same in float32, N = {PAIRWISE:,}": lambda: cka_by_kernels(x[:PAIRWISE], y[:PAIRWISE], centred_by_means),
        f"N × N centred by H, N = {small:,}": lambda: cka_by_kernels(*(z[:small] for z in doubles), centred_by_matrix),
    }
    calls |= {f"ours, N = {n:,}": lambda n=n: linear_cka(x[:n], y[:n]) for n in SIZES}
    calls |= {f"ours debiased, N = {SIZES[-1]:,}": lambda: linear_cka(x, y, debiased=True)}
    parts = [z[:2000].double() for z in (x, y)]
    torch.testing.assert_close(cka_by_kernels(*parts, centred_by_means), linear_cka(x[:2000], y[:2000]))
    times = in_turns(calls, repeats)
    show(f"linear CKA, d = {WIDTH}", times, repeats)
    show_ratios(times, by_means)


# -- feature deviation -----------------------------------------------------------------------------------------------


def deviation_by_rounds(train: Tensor, y: Tensor, test: Tensor, z: Tensor, rounds: int) -> Tensor:
    """One draw after the other."""
    train, test = F.normalize(train.double(), dim=1), F.normalize(test.double(), dim=1)
    size = int(y.bincount().min())
    result = []
    for c in range(int(y.max()) + 1):
        own, mean = train[y == c], test[z == c].mean(dim=0)
        draws = (own[torch.randperm(len(own))[:size]].mean(dim=0) for _ in range(rounds))
        result.append(torch.stack([(draw - mean).norm() for draw in draws]).mean())
    return torch.stack(result)


def deviation(repeats: int = 7) -> None:
    counts = torch.tensor(long_tailed_counts(10, 5000, 100))
    y, z = torch.arange(10).repeat_interleave(counts), torch.arange(10_000) % 10
    train, test = torch.randn(len(y), 64), torch.randn(len(z), 64)
    calls = {
        "a loop over rounds": lambda: deviation_by_rounds(train, y, test, z, 1000),
        "ours": lambda: feature_deviation(train, y, test, z),
    }
    times = in_turns(calls, repeats)
    show(f"feature deviation, R = 1000, {len(y):,} × 64, 10 classes of 5000 to 50", times, repeats)


# -- calibration error -----------------------------------------------------------------------------------------------


def calibration(repeats: int = 41) -> None:
    from torchmetrics.functional.classification import multiclass_calibration_error

    for n, classes in ((1_000, 10), (10_000, 100), (50_000, 1_000)):
        probs, labels = (2 * torch.randn(n, classes)).softmax(dim=1), torch.randint(classes, (n,))
        calls = {
            "torchmetrics": lambda p=probs, y=labels: multiclass_calibration_error(p, y, p.shape[1], n_bins=15),
            "ours": lambda p=probs, y=labels: expected_calibration_error(p, y),
        }
        theirs, ours = (call() for call in calls.values())
        torch.testing.assert_close(ours, theirs.double(), rtol=0, atol=1e-6)
        laps = repeats if n < 50_000 else 7
        times = in_turns(calls, laps)
        show(f"expected calibration error, N = {n:,}, {classes:,} classes, float32", times, laps)
        ratio = times["torchmetrics"] / times["ours"]
        print(f"  torchmetrics takes {ratio:.2f} times as long as ours, {times['ours'] * 1e3:.2f} ms", flush=True)


# -- transfer --------------------------------------------------------------------------------------------------------


def network_like_features(n: int, classes: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rectified features of a falling spectrum, as a network's are; a linear classifier is right in 9 of 10 cases."""
    draw = torch.Generator().manual_seed(seed)
    scale = torch.arange(1, WIDTH + 1) ** -0.5
    turn = torch.linalg.qr(torch.randn(WIDTH, WIDTH, generator=draw)).Q
    means = 0.3 * torch.randn(classes, WIDTH, generator=draw) * scale
    y = torch.randint(classes, (n,), generator=draw)
    return (4 * (means[y] + torch.randn(n, WIDTH, generator=draw) * scale) @ turn).relu(), y


def logistic_objective(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, lam: float) -> float:
    return float(F.cross_entropy(x @ weight.T + bias, y, reduction="sum") + lam * weight.square().sum())


def scikit_learn_fit(
    x: Tensor, y: Tensor, lam: float, begin: tuple[Tensor, Tensor], best: float
) -> tuple[float, float]:
    """Seconds of one warm-started fit, with the loosest tolerance, of powers of ten, that is within 1e-6 of `best`."""
    for power in range(4, 16):
        model = LogisticRegression(C=1 / (2 * lam), tol=10.0**-power, max_iter=5000, warm_start=True)
        model.coef_, model.intercept_ = (part.numpy().copy() for part in begin)
        model.classes_ = y.unique().numpy()
        start = time.process_time()
        model.fit(x.numpy(), y.numpy())
        seconds = time.process_time() - start
        weight, bias = torch.from_numpy(model.coef_), torch.from_numpy(model.intercept_)
        if logistic_objective(x, y, weight, bias, lam) <= best * (1 + 1e-6):
            return seconds, 10.0**-power
    raise RuntimeError(f"scikit-learn came to within 1e-6 of the minimum with no tolerance at λ = {lam:g}")


def transfer(every: int = 4, classes: int = 100) -> None:
    """The path of 45 λ, each begun from the one before, in falling order on both sides.

    scikit-learn fits every fourth λ, from the minimum at the one before it, which it is given; all 45 take too long.
    """
    x, y = network_like_features(12_000, classes)
    train_x, train_y = x[:10_000].double(), y[:10_000]
    start = time.process_time()
    probe = linear_probe(train_x, train_y, x[10_000:], y[10_000:])
    whole = time.process_time() - start
    print(f"\nlinear probe, 10,000 × {WIDTH}, {classes} classes, 45 λ from 1e5 to 1e-6; one run")
    print(f"  ours, all 45, choice on 2,000 and refit on all {whole:9.3f} s, accuracy {probe.accuracies.max():.3f}")
    samples, seconds, before = _samples(train_x, train_y), [], None
    start = time.process_time()
    for i, (lam, theta, gap) in enumerate(_descend(samples, sorted(LAMBDAS, reverse=True))):
        ours, fit = time.process_time() - start, _for_given_features(samples, theta, lam, gap, classes)
        if i % every == every - 1:
            best = logistic_objective(train_x, train_y, fit.weight, fit.bias, lam)
            theirs, tolerance = scikit_learn_fit(train_x, train_y, lam, (before.weight, before.bias), best)
            seconds.append((ours, theirs))
            print(
                f"  λ = {lam:7.1e}  ours {ours:7.3f} s, scikit-learn {theirs:7.3f} s (tol {tolerance:.0e})", flush=True
            )
        before, start = fit, time.process_time()
    ours, theirs = map(sum, zip(*seconds, strict=True))
    print(
        f"  of these {len(seconds)}: ours {ours:.2f} s, scikit-learn {theirs:.2f} s, {theirs / ours:.1f} times as long"
    )


# -- training progress -----------------------------------------------------------------------------------------------


def progress(repeats: int = 3) -> None:
    """A training that a study's `progress = true` looks at, beside the same one unseen."""
    for name, options in (
        ("fashion_mnist", {"model": "cnn_small", "epochs": 3}),
        ("digits", {"model": "cnn_small", "epochs": 20}),
        ("digits", {"model": "resnet32", "epochs": 10}),
    ):
        recipe = Recipe.make(options, {"name": name, "imbalance": "long_tailed", "ratio": 10.0}, 0)
        task = load_task(**vars(recipe.task), seed=0)

        def train(looked_at: bool, recipe: Recipe = recipe, task: Task = task) -> None:
            run = Run(recipe, task, torch.device("cpu"))
            fitting = Fitting(run, lambda *_: {}, observer=Progress(run) if looked_at else None)
            while not fitting.ended:
                fitting.train_epoch()

        times = in_turns({"unseen": lambda: train(False), "looked at": lambda: train(True)}, repeats)
        show(f"{options['model']} on {name}, {len(task.train):,} images, {options['epochs']} epochs", times, repeats)
        print(f"  {times['looked at'] / times['unseen'] - 1:+.1%} of the time", flush=True)


SUBJECTS: dict[str, Callable[[], None]] = {
    "separation": separation,
    "cka": cka,
    "deviation": deviation,
    "calibration": calibration,
    "transfer": transfer,
    "progress": progress,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subjects", nargs="*", help=f"of {', '.join(SUBJECTS)}; all if none is named")
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread")
    with threadpool_limits(1):  # numpy's, and scikit-learn's
        for name in parser.parse_args().subjects or SUBJECTS:
            torch.manual_seed(0)
            SUBJECTS[name]()
