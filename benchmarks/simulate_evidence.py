"""Does the error rate hold, and is the planner's promise kept? Thousands of made-up studies, judged by the real code.

    python benchmarks/simulate_evidence.py [--studies 2000] [SECTION …]

Sections: fixed, rounds, some, power, images, claims, equal, margin, beats. Prints Markdown tables; behind a share
stands its 95 % interval (Wilson).
A study is scores of methods × seeds: what a seed does to all methods, and what it does to each, both drawn anew. In the
sections on new images it is whether each run is right about each test image, and the images are drawn anew too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import special
from sections import print_sections

from equipoise.analysis import compare
from equipoise.analysis.statistics import tests as statistics
from equipoise.analysis.statistics.equivalence import equality_power, equivalence_tests
from equipoise.analysis.statistics.looks import plan_looks
from equipoise.analysis.statistics.new_images import ImageScores, variance_parts
from equipoise.analysis.statistics.power import claim_power
from equipoise.analysis.statistics.sequential import Rounds, judge
from equipoise.analysis.statistics.superiority import chance_to_beat
from equipoise.analysis.statistics.verdict import Verdict

statistics.RANDOM_FLIPS = (
    4_999  # random patterns beyond 14 pairs: the test is valid with any number, and this is faster
)

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails (t, 3 df)": lambda rng, shape: rng.standard_t(3, size=shape),
    "unequal spreads": lambda rng, shape: rng.normal(size=shape) * np.arange(1, shape[0] + 1)[:, None],
    "accuracy on 90 images": lambda rng, shape: rng.binomial(90, 0.7, size=shape) / 90,
}


def draw(rng: np.random.Generator, noise: Noise, effects: np.ndarray, n_seeds: int) -> np.ndarray:
    """Scores (methods, seeds): one method's noise, times the effect in standard deviations of a difference."""
    own = noise(rng, (len(effects), n_seeds))
    return rng.normal(size=n_seeds) + own + math.sqrt(2) * effects[:, None]


def named(scores: np.ndarray, n_seeds: int) -> dict[str, np.ndarray]:
    return {f"m{i}": row[:n_seeds] for i, row in enumerate(scores)}


def in_rounds(valid: np.ndarray, test: np.ndarray, rounds: Rounds, impatient: bool = False) -> tuple[Verdict, int]:
    """A study until it is decided: rounds judged on `valid`, claims made on `test`; and the runs it took.

    The impatient one looks at the claims themselves after each round, and ends as soon as there is one.
    """
    runs = before = 0
    for n in rounds.looks.seeds:
        going = rounds.found[-1].kept if rounds.found else tuple(named(valid, 1))
        runs, before = runs + (n - before) * len(going), n
        rounds = replace(rounds, found=(*rounds.found, judge(named(valid, n), "m0", rounds, higher_is_better=True)))
        verdict = compare(named(test, n), "m0", metric="score", looks=rounds.looks, taken=rounds.taken)
        if not rounds.found[-1].open or (impatient and claims(verdict)):
            break
    return verdict, runs


def claims(verdict: Verdict) -> dict[str, str]:
    return {m.name: m.standing for m in verdict.methods if m.standing in ("better", "worse")}


def splits(verdict: Verdict) -> bool:
    return any(m.tier not in (None, 1) for m in verdict.methods)


def boundaries(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """The first method of each lower tier, with each of the tier above from which it is separable.

    Pairs with the baseline are claims instead.
    """
    tiers: dict[int, list[str]] = {}
    for m in verdict.methods:
        tiers.setdefault(m.tier or 0, []).append(m.name)
    separable = {frozenset((p.first, p.second)) for p in verdict.pairs if p.p_holm <= verdict.alpha}
    for tier, (first, *_) in tiers.items():
        pairs = ((first, name) for name in tiers.get(tier - 1, []) if verdict.baseline not in (first, name))
        yield from (pair for pair in pairs if frozenset(pair) in separable)


def share(count: int, total: int) -> str:
    """`3.1 % (2.4 to 3.9)`: Wilson's 95 % interval."""
    p, z = count / total, 1.959964
    centre, half = p + z * z / (2 * total), z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    low, high = ((centre + s * half) / (1 + z * z / total) for s in (-1, 1))
    return f"{100 * p:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def fixed(studies: int) -> Iterator[str]:
    yield "| methods | seeds | noise | any claim | any claim or second tier |\n|---|---|---|---|---|"
    for methods, n in ((2, 6), (4, 8), (8, 10), (8, 16)):
        for name, noise in NOISES.items():
            rng, claimed, split = np.random.default_rng(0), 0, 0
            for _ in range(studies):
                verdict = compare(named(draw(rng, noise, np.zeros(methods), n), n), "m0", metric="score")
                claimed += bool(claims(verdict))
                split += bool(claims(verdict)) or splits(verdict)
            yield f"| {methods} | {n} | {name} | {share(claimed, studies)} | {share(split, studies)} |"


def rounds_(studies: int) -> Iterator[str]:
    yield "| methods | looks after | rounds judged on | any claim | any claim or second tier | runs (fixed) |"
    yield "|---|---|---|---|---|---|"
    for methods, most in ((2, 24), (4, 28), (8, 36)):
        plan = Rounds(0.05, plan_looks(most, methods - 1), tuple(range(most)))
        for how in ("validation data", "the test set (--peek)", "the claims (ends at the first)"):
            rng, claimed, split, runs = np.random.default_rng(0), 0, 0, 0
            for _ in range(studies):
                test = draw(rng, NOISES["normal"], np.zeros(methods), most)
                valid = test + 2 * rng.normal(size=test.shape) if how == "validation data" else test
                verdict, took = in_rounds(valid, test, plan, impatient=how.startswith("the claims"))
                claimed += bool(claims(verdict))
                split += bool(claims(verdict)) or splits(verdict)
                runs += took
            looks = ", ".join(map(str, plan.looks.seeds))
            taken = f"{runs / studies:.0f} ({methods * most})"
            yield f"| {methods} | {looks} | {how} | {share(claimed, studies)} | {share(split, studies)} | {taken} |"


def some(studies: int) -> Iterator[str]:
    """Half of the methods are better, by as much: what is said of the others, and between equals."""
    yield "| methods | better | design | false claim | false boundary | better ones claimed | runs |"
    yield "|---|---|---|---|---|---|---|"
    for methods, most, n, effect in ((4, 28, 10, 1.0), (4, 28, 10, 2.0), (8, 36, 12, 1.0), (8, 36, 12, 2.0)):
        effects = np.where(np.arange(methods) >= methods // 2, effect, 0.0)
        plan = Rounds(0.05, plan_looks(most, methods - 1), tuple(range(most)))
        for how in (f"fixed, {n} seeds", "rounds, validation", "rounds, --peek"):
            rng, false, boundary, power, runs = np.random.default_rng(0), 0, 0, 0, 0
            for _ in range(studies):
                test = draw(rng, NOISES["normal"], effects, most)
                valid = test if "peek" in how else test + 2 * rng.normal(size=test.shape)
                if "fixed" in how:
                    verdict, took = compare(named(test, n), "m0", metric="score"), methods * n
                else:
                    verdict, took = in_rounds(valid, test, plan)
                said = claims(verdict)
                better = [f"m{i}" for i in range(methods) if effects[i]]
                false += any(name not in better or standing == "worse" for name, standing in said.items())
                boundary += any(effects[int(a[1:])] >= effects[int(b[1:])] for a, b in boundaries(verdict))
                power += sum(said.get(name) == "better" for name in better)
                runs += took
            found = f"{100 * power / studies / sum(effects > 0):.0f} %"
            yield (
                f"| {methods} | {sum(effects > 0)} by {effect} sd | {how} | {share(false, studies)} | "
                f"{share(boundary, studies)} | {found} | {runs / studies:.0f} |"
            )


def power(studies: int) -> Iterator[str]:
    yield "| methods | seeds | true difference | promised | counted | apart |\n|---|---|---|---|---|---|"
    worst = 0.0
    for methods, n in ((2, 6), (2, 8), (2, 12), (4, 7), (4, 8), (4, 12), (8, 9), (8, 10), (8, 12), (8, 20), (21, 12)):
        for effect in (0.75, 1.25, 2.0):
            rng, found = np.random.default_rng(0), 0
            effects = np.where(np.arange(methods) == 1, effect, 0.0)
            for _ in range(studies):
                verdict = compare(named(draw(rng, NOISES["normal"], effects, n), n), "m0", metric="score")
                found += claims(verdict).get("m1") == "better"
            promised = claim_power(n, effect, 0.05, methods - 1)
            worst = max(worst, abs(promised - found / studies))
            apart = f"{100 * (found / studies - promised):+.1f}"
            yield f"| {methods} | {n} | {effect} sd | {100 * promised:.0f} % | {share(found, studies)} | {apart} |"
    yield f"\nLargest distance from the promise: {100 * worst:.1f} points."


@dataclass(frozen=True)
class World:
    """Images of classes, and methods that are right about an image if a sum of normal parts is above 0.

    The parts are the image's difficulty, what a method makes of the image whatever the seed, the seed, the seed for a
    class, and the run and image alone (with spread 1). Hard classes come last; `counts` are test images of each class.
    """

    counts: tuple[int, ...]
    seeds: int
    balanced: bool
    accuracy: float = 0.8  # of the baseline, about
    gain: float = 0.0  # of the other methods, in standard deviations of the sum
    seed: float = 0.1
    image: float = 1.5
    method: float = 0.7

    @property
    def spread(self) -> float:
        return math.sqrt(1 + self.image**2 + self.method**2 + 2 * self.seed**2)

    def levels(self, method: int) -> np.ndarray:
        """The mean of the sum for each class, in its standard deviations; only the baseline, number 0, has no gain."""
        classes = np.linspace(0.6, -0.6, len(self.counts)) if len(self.counts) > 1 else np.zeros(1)
        return special.ndtri(self.accuracy) + classes + (self.gain if method else 0.0)

    def truth(self) -> float:
        """The difference for images and seeds without end."""
        shares = np.ones(len(self.counts)) if self.balanced else np.array(self.counts)
        return float(shares @ (special.ndtr(self.levels(1)) - special.ndtr(self.levels(0))) / shares.sum())

    def right(self, rng: np.random.Generator, studies: int, methods: int = 2) -> tuple[np.ndarray, np.ndarray]:
        """Whether each run is right (methods, studies, seeds, N), and the class of each image (studies, N)."""
        n, classes = sum(self.counts), len(self.counts)
        labels = np.tile(np.repeat(np.arange(classes), self.counts), (studies, 1))
        if not self.balanced:  # a new test set has other class frequencies
            labels = rng.choice(classes, size=(studies, n), p=np.array(self.counts) / n)
        difficulty = self.image * rng.standard_normal((studies, 1, n))
        right = []
        for method in range(methods):
            of_class = self.seed * rng.standard_normal((studies, self.seeds, classes))
            z = np.take_along_axis(of_class, np.broadcast_to(labels[:, None], (studies, self.seeds, n)), axis=2)
            z += rng.standard_normal(z.shape) + self.seed * rng.standard_normal((studies, self.seeds, 1))
            z += difficulty + self.method * rng.standard_normal((studies, 1, n))
            right.append(z + self.spread * self.levels(method)[labels][:, None] > 0)
        return np.stack(right).astype(np.float64), labels

    def strata(self) -> tuple[np.ndarray, np.ndarray]:
        """The stratum of each image, and the share of each stratum."""
        classes = len(self.counts)
        if self.balanced:
            return np.repeat(np.arange(classes), self.counts), np.full(classes, 1 / classes)
        return np.zeros(sum(self.counts), dtype=np.int64), np.ones(1)


LONG_TAIL = (100, 70, 50, 35, 25, 18, 12, 8, 6, 4)
WORLDS = {
    "accuracy, 1,000 images": World((100,) * 10, 10, False),
    "accuracy, 300 images": World((30,) * 10, 6, False, gain=0.1),
    "accuracy, 300 images, seeds vary much": World((30,) * 10, 6, False, seed=0.5),
    "accuracy, 100 images": World((10,) * 10, 6, False),
    "accuracy, 50 images": World((5,) * 10, 3, False),
    "accuracy, 1,000 images, few seeds": World((100,) * 10, 3, False),
    "balanced, 50 a class": World((50,) * 10, 6, True),
    "balanced, 30 a class, 90 % right": World((30,) * 10, 6, True, accuracy=0.9, gain=0.2),
    "balanced, 10 a class": World((10,) * 10, 6, True),
    "balanced, 5 a class": World((5,) * 10, 6, True),
    "balanced, 5 a class, seeds vary much": World((5,) * 10, 6, True, seed=0.5),
    "balanced, 3 a class": World((3,) * 10, 3, True),
    "balanced, 3 a class, 100 classes": World((3,) * 100, 6, True),
    "balanced, 100 to 4 a class": World(LONG_TAIL, 8, True, gain=0.1),
    "balanced, 100 to 4 a class, few seeds": World(LONG_TAIL, 3, True),
    "balanced, 40 and 5 of two classes": World((40, 5), 6, True),
}
NUMBERS_AT_ONCE = 4_000_000


def parts_of(studies: int, seeds: int, images: int) -> Iterator[int]:
    """So many studies in parts that fit the memory."""
    most = max(1, NUMBERS_AT_ONCE // (seeds * images))
    yield from (min(most, studies - done) for done in range(0, studies, most))


def images(studies: int) -> Iterator[str]:
    yield "| score, test images | seeds | discordant | these images alone | new images | wider | images limit |"
    yield "|---|---|---|---|---|---|---|"
    for name, world in WORLDS.items():
        rng, seen, covered, by_images, widths, discordant = np.random.default_rng(0), 0, 0, 0, [], []
        for count in parts_of(studies, world.seeds, sum(world.counts)):
            (base, other), _ = world.right(rng, count)
            parts = variance_parts(other - base, *world.strata())
            miss, half = abs(parts.mean - world.truth()), special.stdtrit(parts.freedom, 0.975) * np.sqrt(parts.total)
            usual = special.stdtrit(world.seeds - 1, 0.975) * np.sqrt(parts.seeds)
            seen, covered = seen + int((miss <= usual).sum()), covered + int((miss <= half).sum())
            by_images += int((parts.images > parts.seeds).sum())
            widths.append(half / np.where(usual > 0, usual, np.nan))
            discordant.append((other != base).mean())
        wider = f"{np.nanmedian(np.concatenate(widths)):.1f} times"
        yield (
            f"| {name} | {world.seeds} | {100 * np.mean(discordant):.0f} % | {share(seen, studies)} | "
            f"{share(covered, studies)} | {wider} | {100 * by_images / studies:.0f} % |"
        )


def claims_(studies: int) -> Iterator[str]:
    """No method differs for new images, though on a given test set each does a little."""
    yield "| methods | seeds | score, test images | any claim | any claim about new images |"
    yield "|---|---|---|---|---|"
    for methods, world in (
        (2, World((30,) * 10, 6, False)),
        (4, World((30,) * 10, 8, True)),
        (4, World((5,) * 10, 8, True)),
        (4, World(LONG_TAIL, 12, True)),
    ):
        rng, claimed, about_new = np.random.default_rng(0), 0, 0
        strata, shares = world.strata()
        of_image = shares[strata] / np.bincount(strata)[strata]
        for _ in range(studies):
            right, _ = world.right(rng, 1, methods)
            values = {f"m{i}": list(runs) for i, (runs,) in enumerate(right)}
            scores = {name: np.stack(runs) @ of_image for name, runs in values.items()}
            verdict = compare(scores, "m0", metric="accuracy", images=ImageScores(values, strata, shares))
            claimed += bool(claims(verdict))
            about_new += any(m.holds_for == "new images" for m in verdict.methods)
        kind = f"{'balanced' if world.balanced else 'accuracy'}, {sum(world.counts)} of {len(world.counts)} classes"
        yield f"| {methods} | {world.seeds} | {kind} | {share(claimed, studies)} | {share(about_new, studies)} |"


def equal(studies: int) -> Iterator[str]:
    """All methods differ by exactly the margin, or none differs at all."""
    yield "| methods | seeds | margin | noise | false at the margin | promised | found where all are equal |"
    yield "|---|---|---|---|---|---|---|"
    for methods, n, margin in ((2, 6, 2.0), (2, 12, 1.0), (4, 8, 2.0), (4, 16, 1.0), (8, 10, 2.0)):
        for name in ("normal", "heavy tails (t, 3 df)"):
            rng, false, found = np.random.default_rng(0), 0, 0
            effects = margin * np.where(np.arange(methods) % 2, 1.0, -1.0)
            effects[0] = 0.0
            unit = math.sqrt(2) * (1 if name == "normal" else math.sqrt(3))  # a difference's standard deviation
            for _ in range(studies):
                for shift in (effects, np.zeros(methods)):
                    own = NOISES[name](rng, (methods, n)) + unit * shift[:, None]
                    verdict = compare(named(own, n), "m0", metric="score", equivalent_within=margin * unit)
                    said = [m.p_equal <= 0.05 for m in verdict.methods if m.name != "m0"]
                    false += any(said) if shift is effects else 0
                    found += said[0] if shift is not effects else 0
            promised = f"{100 * equality_power(n, margin, 0.05, methods - 1):.0f} %" if name == "normal" else ""
            yield (
                f"| {methods} | {n} | {margin} sd | {name} | {share(false, studies)} | {promised} | "
                f"{share(found, studies)} |"
            )


def margin_(studies: int) -> Iterator[str]:
    """False "practically equal" at the margin alone, in ten times as many studies; any claim is Holm's first."""
    yield "| methods | seeds | margin | noise | false at the margin |\n|---|---|---|---|---|"
    for methods, n, margin in ((2, 6, 2.0), (2, 12, 1.0), (4, 8, 2.0), (8, 10, 2.0)):
        for name in ("normal", "heavy tails (t, 3 df)"):
            rng, unit = np.random.default_rng(1), math.sqrt(2) * (1 if name == "normal" else math.sqrt(3))
            own = NOISES[name](rng, (10 * studies * methods, n)).reshape(-1, methods, n)
            side = np.where(np.arange(1, methods) % 2, 1.0, -1.0)
            d = own[:, 1:] - own[:, :1] + unit * margin * side[:, None]
            p = np.array(equivalence_tests(list(d.reshape(-1, n)), 0, unit * margin)).reshape(-1, methods - 1)
            false = int((p.min(axis=1) * (methods - 1) <= 0.05).sum())
            yield f"| {methods} | {n} | {margin} sd | {name} | {share(false, 10 * studies)} |"


def beats(studies: int) -> Iterator[str]:
    yield "| seeds | true chance | shared by runs of a seed | covered |\n|---|---|---|---|"
    for n in (3, 6, 10, 20):
        for chance in (0.5, 0.8, 0.97):
            for shared in (0.0, 1.0):
                rng, covered = np.random.default_rng(0), 0
                gain = special.ndtri(chance) * math.sqrt(2 + 2 * shared**2)
                for _ in range(studies):
                    common = shared * rng.normal(size=n)
                    found = chance_to_beat(common + rng.normal(size=n) + gain, common + rng.normal(size=n))
                    covered += found.low <= chance <= found.high
                part = "half of the variance" if shared else "nothing"
                yield f"| {n} | {100 * chance:.0f} % | {part} | {share(covered, studies)} |"


SECTIONS: dict[str, Callable[[int], Iterator[str]]] = {
    "fixed": fixed,
    "rounds": rounds_,
    "some": some,
    "power": power,
    "images": images,
    "claims": claims_,
    "equal": equal,
    "margin": margin_,
    "beats": beats,
}


if __name__ == "__main__":
    print_sections(SECTIONS, __doc__)
