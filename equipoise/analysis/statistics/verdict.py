"""Who is better than the baseline, by how much, how surely, and how many more seeds would settle the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from .._arrays import Floats
from .._kinds import Array
from . import _sentences
from ._paired import Evidence, Pair, Paired, mean, over
from .equivalence import equivalence_tests
from .family import Family
from .looks import Looks
from .new_images import ImageScores, new_images
from .priority import ALL_METRICS
from .superiority import Chance, chance_to_beat
from .tests import holm, mean_interval, seeds_needed

Standing = Literal["better", "worse", "practically equal", "not separable", "withheld", "baseline", "no data"]

CLAIMS = ("better", "worse", "practically equal")


@dataclass(frozen=True)
class MethodResult:
    """One method: its own runs (n, mean, low, high), and its difference to the baseline over the pairs they share.

    `difference` is method minus baseline in the metric's own direction: below 0 is good where lower is better.
    Intervals are Student t at confidence 1 - alpha, each on its own. Nan is "not known": of an interval from fewer
    than two values, of every comparison of the baseline with itself, of a method without pairs ("no data").
    `seeds_needed` is the number of pairs in all that would settle a "not separable"; None if that is not the standing,
    or no such number is known. `tier` is None for a method without pairs. `p` is that of the data alone, `p_holm` has
    all corrections in it; both are of `n_judged` pairs, fewer than `n_pairs` where a claim was made before others were
    added. A claim is "withheld" where a premise of the study does not hold. `look` is the number, from 1, of the look
    that judged the method, in a study that adds seeds in rounds; else None.

    `beats`, with its interval, is the chance that a new run scores better than a new run of the baseline. `p_equal` is
    the p-value, with all corrections, of "the difference is as large as the study's margin"; nan where it has none.
    "practically equal" is said of what is neither better nor worse.

    `new_low` and `new_high` are the interval of the difference for new images of this kind, `p_new` is the p-value
    there with all corrections; `limited_by` says what makes that interval wide, "seeds" or "images", and `new_at_best`
    is the half width that would be left with any number of seeds. A claim `holds_for` "new images" or "these images".
    All of this is not known, nan or empty, where no score is known image by image.
    """

    name: str
    n: int
    mean: float
    low: float
    high: float
    difference: float
    diff_low: float
    diff_high: float
    n_pairs: int
    p: float
    p_holm: float
    standing: Standing
    seeds_needed: int | None
    tier: int | None
    look: int | None = None
    n_judged: int = 0
    beats: float = math.nan
    beats_low: float = math.nan
    beats_high: float = math.nan
    p_equal: float = math.nan
    new_low: float = math.nan
    new_high: float = math.nan
    p_new: float = math.nan
    new_at_best: float = math.nan
    limited_by: str = ""
    holds_for: str = ""


@dataclass(frozen=True)
class PairResult:
    """Two methods: the p-value of their differences alone, and that with all corrections, as the tiers go by it."""

    first: str
    second: str
    p: float
    p_holm: float


@dataclass(frozen=True)
class Best:
    """The best two of a tier, by how much they differ, and the number of pairs in all that would probably tell them
    apart; None where no such number is known."""

    tier: int
    first: str
    second: str
    difference: float
    n_pairs: int
    seeds_needed: int | None


@dataclass(frozen=True)
class Verdict:
    """What a comparison found; `methods` are ranked by their difference to the baseline, best first.

    Where no run is missing this is the order of the means. Where some are, means of unlike seeds are not compared: a
    method that fails on hard seeds would win. Methods without pairs follow by their mean, those without runs last.

    `gone` are methods that count in the correction though they are asked for no more, `share` is the part of alpha that
    claims could spend, `left` what a further look would have, and `notes` say what else counts: see `analysis.family`.

    `broken` says which premise of the study does not hold; it is empty where none is known to fail. Claims that rest on
    it are "withheld" then, unless the user wants them all the same.

    `equivalent_within` is the margin, in units of the metric, within which methods count as practically equal.

    `pairs` has every pair of methods with runs in common; `best` has the best two of each tier that has two.
    `seed_seconds` is the computing time of one more seed of all methods, None where it is not known.
    """

    baseline: str
    metric: str
    higher_is_better: bool
    alpha: float
    n_seeds: int
    methods: tuple[MethodResult, ...]
    looks: Looks | None = None
    gone: tuple[str, ...] = ()
    share: float = 1.0
    left: float = 1.0
    notes: tuple[str, ...] = ()
    broken: str = ""
    equivalent_within: float | None = None
    pairs: tuple[PairResult, ...] = ()
    best: tuple[Best, ...] = ()
    seed_seconds: float | None = None

    def on_broken_premise(self, broken: str, *, accepted: bool = False) -> Verdict:
        """The same with the sentence `broken` said first, and its claims withheld unless the user has `accepted` it."""
        methods = self.methods
        if not accepted:
            methods = tuple(replace(m, standing="withheld") if m.standing in CLAIMS else m for m in methods)
        return replace(self, broken=broken, methods=methods)

    def sentences(self) -> list[str]:
        """The verdict in plain words, with the numbers behind every claim: the answer first."""
        return [sentence.text for sentence in self.explained()]

    def explained(self) -> list[_sentences.Sentence]:
        """The same sentences, each with the heading of docs/evidence.md that has its formula."""
        return _sentences.sentences(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, which has no nan: None instead."""
        data = asdict(self)
        for name in ("methods", "pairs", "best"):
            data[name] = [{key: _none_for_nan(value) for key, value in row.items()} for row in data[name]]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_dict` wrote; what else is there, as in a report's verdict.json, is passed over."""
        looks = Looks.from_dict(data["looks"]) if data.get("looks") else None
        own = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        words = {name: tuple(data.get(name, ())) for name in ("gone", "notes")}
        rows = {
            name: tuple(kind(**_nan_for_none(kind, row)) for row in data.get(name, ()))
            for name, kind in (("methods", MethodResult), ("pairs", PairResult), ("best", Best))
        }
        return cls(**{**own, **words, **rows, "looks": looks})


def compare(
    scores: Mapping[str, Array],
    baseline: str,
    *,
    metric: str = "balanced_accuracy",
    higher_is_better: bool | None = None,
    alpha: float = 0.05,
    looks: Looks | None = None,
    taken: Mapping[str, int] | None = None,
    family: Family | None = None,
    images: ImageScores | None = None,
    equivalent_within: float | None = None,
    seed: int = 0,
) -> Verdict:
    """Judge each method against the baseline on scores (n_seeds,) that are paired by position.

    A nan is a run that failed or is missing; a pair needs both of its runs. Each method's differences get a sign-flip
    test, and all methods with pairs one Holm adjustment: "better" and "worse" are said where p_holm <= alpha, so the
    chance of any false claim in the study is at most alpha. All else is "not separable". No other test stands in
    where this one cannot speak; `smallest_n_for_claim` tells when it can.

    Tiers follow the ranking: a new one begins with each method that is separably worse than one of those in the tier
    above it, so that no two methods of a tier are separable. A method and the baseline are separable where the claim
    above is made. Two others are where a sign-flip test says so, after Holm over all such pairs; these count only if
    some claim is made. So without any true difference the chance of a claim or a second tier is at most alpha. With
    some, the chance of a false claim is at most alpha, and that of a false boundary between two other methods is too.

    Args:
        higher_is_better: by default what `ALL_METRICS` says of `metric`, and True for a metric it does not know.
        looks: of a study that adds seeds in rounds: each p-value is divided by the share of its look before Holm.
        taken: with `looks`, the number of the last look at which each method had all its runs; scores of later seeds
            are left out, and all of a method that is not named. By default the last that the number of seeds allows.
        family: what was compared on the same test set before, from `family_of`: it counts in every claim. `scores` then
            has those of `family.gone` too, which are not part of the verdict otherwise.
        images: what the scores are made of, image by image: tells which differences hold for new images of this kind.
        equivalent_within: smaller differences, in units of the metric, do not matter: a method that is neither better
            nor worse is "practically equal" where two one-sided tests say so, with a Holm adjustment of their own.
        seed: of the random sign patterns, needed beyond `MAX_EXACT` pairs only.

    Example:
        >>> plain, focal = [0.70, 0.71, 0.69, 0.70, 0.72, 0.71], [0.73, 0.75, 0.71, 0.74, 0.73, 0.74]
        >>> verdict = compare({"plain": plain, "focal": focal}, baseline="plain")
        >>> [(m.name, m.standing, m.p_holm, m.tier) for m in verdict.methods]
        [('focal', 'better', 0.03125, 1), ('plain', 'baseline', nan, 2)]
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha!r}")
    if higher_is_better is None:
        higher_is_better = ALL_METRICS[metric].higher_is_better if metric in ALL_METRICS else True
    family = family or Family((), left=1.0)
    paired, sign = Paired(scores, baseline, looks, taken, family), 1 if higher_is_better else -1
    ranked = [name for name in paired.ranked(baseline, sign) if name not in family.gone]
    claims = paired.claims(baseline, seed)
    same = partial(equivalence_tests, within=equivalent_within) if equivalent_within is not None else None
    equal = paired.claims(baseline, seed, same) if same else {}
    rows = {name: _result(paired, name, baseline, claims, equal, sign, alpha, family.left) for name in ranked}
    if images is not None:
        rows = _for_new_images(rows, paired, baseline, images, alpha, family, equivalent_within)
    tests = {**claims, **paired.between(claims, seed)}
    below = paired.below(tests, sign, alpha)
    tiers = _tiers([name for name in ranked if len(paired.differences(name, baseline))], below)
    methods = tuple(replace(row, tier=tiers.get(name)) for name, row in rows.items())
    return Verdict(
        baseline,
        metric,
        higher_is_better,
        alpha,
        len(paired.runs[baseline]),
        methods,
        looks,
        family.gone,
        family.share,
        family.left,
        family.notes,
        equivalent_within=equivalent_within,
        pairs=tuple(PairResult(*pair, test.p, test.adjusted) for pair, test in tests.items() if test.n_pairs),
        best=tuple(_best(paired, tiers, claims, alpha * family.left)),
    )


def _best(paired: Paired, tiers: Mapping[str, int], claims: Mapping[Pair, Evidence], level: float) -> Iterator[Best]:
    """The best two of each tier; one of them may be the baseline, and they are then one of the claims."""
    compared = sum(not math.isnan(claim.p) for claim in claims.values())
    for tier in sorted({*tiers.values()}):
        first, *rest = [name for name, own in tiers.items() if own == tier]
        if not rest:
            continue
        d = paired.differences(first, rest[0])
        comparisons = compared if paired.baseline in (first, rest[0]) else max(compared, math.comb(compared, 2))
        needed = _planned(d, level * paired.share(first, rest[0]), comparisons)
        yield Best(tier, first, rest[0], mean(d), len(d), needed)


def _result(
    paired: Paired,
    name: str,
    baseline: str,
    claims: Mapping[Pair, Evidence],
    equal: Mapping[Pair, Evidence],
    sign: int,
    alpha: float,
    left: float,
) -> MethodResult:
    """All that is said of a method on these images, but its tier."""
    x, d = paired.known(name), paired.differences(name, baseline)
    test, same = (tests.get((name, baseline), Evidence(math.nan, math.nan, 0)) for tests in (claims, equal))
    standing: Standing = _standing(d, test.adjusted, same.adjusted, sign, alpha)
    beats = chance_to_beat(sign * paired.runs[name], sign * paired.runs[baseline], 1 - alpha)
    if name == baseline:
        d, standing, beats = np.empty(0), "baseline", Chance(math.nan, math.nan, math.nan)
    level = alpha * left * paired.share(name, baseline)
    comparisons = sum(not math.isnan(claim.p) for claim in claims.values())
    (low, high), (diff_low, diff_high) = mean_interval(x, 1 - alpha), mean_interval(d, 1 - alpha)
    return MethodResult(
        name=name,
        n=len(x),
        mean=mean(x),
        low=low,
        high=high,
        difference=mean(d),
        diff_low=diff_low,
        diff_high=diff_high,
        n_pairs=len(d),
        p=test.p,
        p_holm=test.adjusted,
        standing=standing,
        seeds_needed=_planned(d, level, comparisons) if standing == "not separable" else None,
        tier=None,
        look=paired.look[name],
        n_judged=test.n_pairs,
        beats=beats.value,
        beats_low=beats.low,
        beats_high=beats.high,
        p_equal=same.adjusted,
    )


def _for_new_images(
    rows: Mapping[str, MethodResult],
    paired: Paired,
    baseline: str,
    images: ImageScores,
    alpha: float,
    family: Family,
    within: float | None,
) -> dict[str, MethodResult]:
    """The same rows with what can be said of new images.

    A claim about new images is one about these images first: both tests must agree.
    """
    tested = {
        name: new_images(
            images.differences(name, baseline, paired.both(name, baseline)), images.strata, images.shares, 1 - alpha
        )
        for name, row in rows.items()
        if row.n_pairs
    }

    def adjusted(p: Mapping[str, float]) -> dict[str, float]:
        """With all corrections; Holm is over all methods, those that are gone included."""
        shares = [over(p[name], family.share * paired.share(name, baseline)) for name in p]
        return dict(zip(p, holm([*shares, *(1.0 for _ in family.gone)]).tolist(), strict=False))

    p_new = adjusted({name: new.p for name, new in tested.items()})
    p_equal = adjusted({name: new.p_equal(within) for name, new in tested.items()}) if within else {}
    results = dict(rows)
    for name, new in tested.items():
        decides = p_equal if rows[name].standing == "practically equal" else p_new
        known, claimed = not math.isnan(new.p), rows[name].standing in CLAIMS
        results[name] = replace(
            rows[name],
            new_low=new.low,
            new_high=new.high,
            p_new=p_new[name],
            new_at_best=new.at_best,
            limited_by=("images" if new.by_images else "seeds") if known else "",
            holds_for=("new images" if decides[name] <= alpha else "these images") if known and claimed else "",
        )
    return results


def _standing(differences: Floats, p: float, p_equal: float, sign: int, alpha: float) -> Standing:
    if not len(differences):
        return "no data"
    if not p <= alpha:
        return "practically equal" if p_equal <= alpha else "not separable"
    return "better" if sign * differences.mean() > 0 else "worse"


def _planned(differences: Floats, level: float, comparisons: int) -> int | None:
    """`seeds_needed`, and one more at least than there are: where the plan is met already, these runs were unlucky."""
    n = seeds_needed(differences, level, comparisons=comparisons) if level > 0 else None
    return None if n is None else max(n, len(differences) + 1)


def _tiers(ranked: Sequence[str], below: set[Pair]) -> dict[str, int]:
    tiers: dict[str, int] = {}
    tier: list[str] = []
    number = 1
    for name in ranked:
        if any((name, higher) in below for higher in tier):
            tier, number = [], number + 1
        tier.append(name)
        tiers[name] = number
    return tiers


def _none_for_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _nan_for_none(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    floats = {field.name for field in fields(kind) if field.type == "float"}
    return {name: math.nan if value is None and name in floats else value for name, value in row.items()}
