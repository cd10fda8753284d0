"""A verdict in words that a manager can read and a statistician can check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .priority import ALL_METRICS
from .tests import MAX_EXACT, MOST_SEEDS, RANDOM_FLIPS, power_note

if TYPE_CHECKING:
    from .verdict import MethodResult, Verdict


def sentences(verdict: Verdict) -> list[str]:
    """The headline, what the number of pairs allows, each method, the tiers, the missing runs, how it was done."""
    others = [m for m in verdict.methods if m.standing != "baseline"]
    compared = [m for m in others if m.n_pairs]
    if not compared:
        return [f"Nothing can be compared with {verdict.baseline} on {_label(verdict)}.", *_missing(verdict)]
    return [
        " ".join([*filter(None, [verdict.broken]), _headline(verdict, compared), *_also_counted(verdict)]),
        _power(verdict, compared),
        *(_method(verdict, m) for m in others),
        _tiers(verdict),
        *_left_out(verdict),
        *_missing(verdict),
        _how(verdict, compared),
        *_looks(verdict),
        *_earlier(verdict),
    ]


def _headline(verdict: Verdict, compared: list[MethodResult]) -> str:
    """The best method with its score or, where none is better, the baseline with its own; then the others."""
    better, worse, withheld = (
        [m for m in compared if m.standing == standing] for standing in ("better", "worse", "withheld")
    )
    if better:
        size = f"{_rounded(verdict, abs(better[0].difference))}{_points(verdict)}"
        where = {"new images": ", for new images of this kind too", "these images": " on these test images"}
        found = f"{better[0].name} reaches {_reached(verdict, better[0])}, {size} better than {verdict.baseline}"
        found += where.get(better[0].holds_for, "")
        others = [m.name for m in better[1:]]
        found += f"; {', '.join(others)} beat{'s' if len(others) == 1 else ''} {verdict.baseline} too" if others else ""
    else:
        shown = "called better or worse than" if withheld else "shown to beat"
        baseline = next(m for m in verdict.methods if m.standing == "baseline")
        found = f"No method is {shown} {baseline.name}, which reaches {_reached(verdict, baseline)}"
    equal = [m for m in compared if m.standing == "practically equal"]
    tail = "".join(
        f"; {', '.join(m.name for m in some)} {'is' if len(some) == 1 else 'are'} {word}"
        for some, word in ((equal, "practically equal"), (worse, "worse"))
        if some
    )
    return f"{found}{tail}; {len(compared)} compared."


def _reached(verdict: Verdict, m: MethodResult) -> str:
    """The score itself: "91.2 % balanced accuracy (90.1 to 92.3, n = 6)"."""
    unit = {"percent": " %", "nats": " nats", "": ""}[_unit(verdict)]
    low, high = _rounded(verdict, m.low), _rounded(verdict, m.high)
    interval = "" if math.isnan(m.low) else f"{low} to {high}, "
    return f"{_rounded(verdict, m.mean)}{unit} {_label(verdict)} ({interval}n = {m.n})"


def _also_counted(verdict: Verdict) -> list[str]:
    """What is not asked for any more, or was asked first, and counts all the same."""
    one = len(verdict.gone) == 1
    gone = [
        f"{'1 method that was' if one else f'{len(verdict.gone)} methods that were'} compared before "
        f"({', '.join(verdict.gone)}) {'is' if one else 'are'} not in this study any more; "
        f"{'it still counts' if one else 'they still count'} in the correction."
    ]
    return [*(gone if verdict.gone else []), *verdict.notes]


def _power(verdict: Verdict, compared: list[MethodResult]) -> str:
    most = max(compared, key=lambda m: m.n_pairs)
    share = verdict.share * _share(verdict, most)
    if not share:
        spent = f"{100 * verdict.alpha:.3g} %"
        return (
            f"Earlier looks at this test set have used up the {spent} of error that claims may have; a new question "
            "needs a folder of its own."
        )
    return power_note(most.n_pairs, len(compared) + len(verdict.gone), verdict.alpha * share)


def _method(verdict: Verdict, m: MethodResult) -> str:
    if m.standing == "no data":
        return f"{m.name} shares no finished seed with {verdict.baseline}: nothing is known of their difference."
    if m.standing == "not separable":
        size = _amount(verdict, m.difference, signed=True)
        said = f"{m.name} is not separable from {verdict.baseline}: {size} {_evidence(verdict, m, 1, signed=True)}"
        return f"{said}; {_outlook(verdict, m)}.{_new_images(verdict, m, 1, signed=True)}"
    if m.standing == "practically equal":
        size = _amount(verdict, m.difference, signed=True)
        said = f"{m.name} is practically equal to {verdict.baseline}: {size} {_evidence(verdict, m, 1, signed=True)}"
        return f"{said}, and {_margin(verdict, m)}.{_new_images(verdict, m, 1, signed=True)}"
    if m.standing == "withheld":
        size = _amount(verdict, m.difference, signed=True)
        said = f"{m.name} differs from {verdict.baseline} by {size} {_evidence(verdict, m, 1, signed=True)}"
        return f"{said}; the claim is withheld.{_new_images(verdict, m, 1, signed=True)}"
    sign = 1 if m.difference > 0 else -1
    size = _amount(verdict, sign * m.difference)
    said = f"{m.name} is {m.standing} than {verdict.baseline} by {size} {_evidence(verdict, m, sign)}"
    said += f", but {_margin(verdict, m)}" if m.p_equal <= verdict.alpha else ""
    return f"{said}.{_new_images(verdict, m, sign)}"


def _margin(verdict: Verdict, m: MethodResult) -> str:
    margin = _amount(verdict, verdict.equivalent_within or 0.0)
    return f"surely by less than the {margin} that this study calls equal (two one-sided tests, p = {m.p_equal:.3g})"


def _new_images(verdict: Verdict, m: MethodResult, sign: int, signed: bool = False) -> str:
    """What the difference is for images that nobody has seen, and what a narrower interval would take."""
    if math.isnan(m.new_low):
        return ""
    low, high = sorted((sign * m.new_low, sign * m.new_high))
    interval = f"{_number(verdict, low, signed)} to {_amount(verdict, high, signed)}"
    if m.holds_for == "new images":
        return f" This holds for new images of this kind too: {interval} (p = {m.p_new:.3g} after Holm)."
    limit = "the number of seeds limits this more than the number of test images"
    if m.limited_by == "images":
        limit = (
            f"test images limit this: with any number of seeds it would still be ± {_amount(verdict, m.new_at_best)}"
        )
    scope = "This is about these test images; for" if m.holds_for else "For"
    return f" {scope} new images of this kind the interval is {interval}; {limit}."


def _evidence(verdict: Verdict, m: MethodResult, sign: int, signed: bool = False) -> str:
    low, high = sorted((sign * m.diff_low, sign * m.diff_high))
    interval = f"{_number(verdict, low, signed)} to {_number(verdict, high, signed)}"
    known = "unknown" if math.isnan(low) else interval
    pairs = "1 pair" if m.n_pairs == 1 else f"{m.n_pairs} pairs"
    adjusted = "adjusted for looks and by Holm" if verdict.looks or verdict.share < 1 else "Holm-adjusted"
    judged = "" if m.n_judged in (0, m.n_pairs) else f" for the first {m.n_judged}"
    return f"({_confidence(verdict)} interval {known}, n = {pairs}, p = {m.p:.3g}{judged}, {adjusted} {m.p_holm:.3g})"


def _outlook(verdict: Verdict, m: MethodResult) -> str:
    if m.difference == 0:
        return "they do not differ in what was observed"
    if m.n_pairs < 2:
        return "one pair tells nothing of the spread"
    if not verdict.left:
        return "further seeds can show nothing here, for the looks so far have used up the error that claims may have"
    if m.seeds_needed is None:
        return f"more than {MOST_SEEDS} pairs would be needed to separate them"
    more = m.seeds_needed - m.n_pairs
    return f"a difference of this size would need about {m.seeds_needed} pairs, {more} more, for an 80 % chance to show"


def _tiers(verdict: Verdict) -> str:
    tiers: dict[int, list[str]] = {}
    for m in verdict.methods:
        if m.tier is not None:
            tiers.setdefault(m.tier, []).append(m.name)
    parts = [f"tier {tier}: {', '.join(names)}" for tier, names in sorted(tiers.items())]
    withheld = any(m.standing == "withheld" for m in verdict.methods)
    hedge = "Of training this short, and not as a claim: within" if withheld else "Within"
    return f"{hedge} a tier no method is separably worse than its best, named first ({'; '.join(parts)})."


def _left_out(verdict: Verdict) -> list[str]:
    """Methods that a study in rounds gave no further seeds."""
    looks, last = verdict.looks, max(m.look or 0 for m in verdict.methods)
    if looks is None:
        return []
    early: dict[int, list[str]] = {}
    for m in verdict.methods:
        if m.look and m.look < last:
            early.setdefault(looks.seeds[m.look - 1], []).append(m.name)
    parts = [f"{', '.join(names)} after {seeds} seeds" for seeds, names in sorted(early.items())]
    return [f"Left out of the later rounds: {'; '.join(parts)}."] if parts else []


def _missing(verdict: Verdict) -> list[str]:
    def expected(m: MethodResult) -> int:
        return verdict.looks.seeds[m.look - 1] if verdict.looks and m.look else verdict.n_seeds

    gaps = [f"{expected(m) - m.n} of {expected(m)} of {m.name}" for m in verdict.methods if m.n < expected(m)]
    return [f"Runs that failed or are missing, left out with their pairs: {', '.join(gaps)}."] if gaps else []


def _how(verdict: Verdict, compared: list[MethodResult]) -> str:
    random = any(m.n_pairs > MAX_EXACT for m in compared)
    test = f"sign-flip tests ({RANDOM_FLIPS:,} random sign patterns)" if random else "exact sign-flip tests"
    return (
        f"Claims rest on two-sided {test} of differences paired by seed, Holm-adjusted over "
        f"{len(compared) + len(verdict.gone)} and held against {verdict.alpha:g}; boundaries between "
        "tiers that are no such claim, on the same tests of the other pairs, with a Holm of their own; the intervals "
        "are Student t, each for one difference alone, and decide nothing."
    )


def _looks(verdict: Verdict) -> list[str]:
    if verdict.looks is None:
        return []
    seeds = ", ".join(map(str, verdict.looks.seeds))
    shares = ", ".join(f"{100 * verdict.alpha * share:.3g}" for share in verdict.looks.shares)
    return [
        f"Seeds were added in rounds, with looks planned beforehand after {seeds} seeds. They may spend {shares} % of "
        f"error, {100 * verdict.alpha:.3g} % in all; each p-value is divided by its look's part of that before Holm: "
        "the claims hold whatever made the study end where it did."
    ]


def _earlier(verdict: Verdict) -> list[str]:
    if not 0 < verdict.share < 1:
        return []
    return [
        f"Earlier looks at this test set leave {100 * verdict.alpha * verdict.share:.2g} % of error for this one: each "
        f"p-value that is new in it is divided by {verdict.share:.2g} before Holm."
    ]


def _share(verdict: Verdict, m: MethodResult) -> float:
    return verdict.looks.shares[m.look - 1] if verdict.looks and m.look else 1.0


def _label(verdict: Verdict) -> str:
    return ALL_METRICS[verdict.metric].label if verdict.metric in ALL_METRICS else verdict.metric


def _confidence(verdict: Verdict) -> str:
    return f"{100 * (1 - verdict.alpha):.3g} %"


def _unit(verdict: Verdict) -> str:
    return ALL_METRICS[verdict.metric].unit if verdict.metric in ALL_METRICS else ""


def _number(verdict: Verdict, value: float, signed: bool = False) -> str:
    plus = "+" if signed else ""
    if _unit(verdict) == "percent":
        return f"{100 * value:{plus}z.2f}"
    return f"{value:{plus}z.3f}" if _unit(verdict) == "nats" else f"{value:{plus}z.4g}"


def _amount(verdict: Verdict, value: float, signed: bool = False) -> str:
    return _number(verdict, value, signed) + _points(verdict)


def _rounded(verdict: Verdict, value: float) -> str:
    """For the headline: percent with one decimal, as the tables have it."""
    return f"{100 * value:z.1f}" if _unit(verdict) == "percent" else _number(verdict, value)


def _points(verdict: Verdict) -> str:
    """The unit of a difference."""
    return {"percent": " points", "nats": " nats", "": ""}[_unit(verdict)]
