"""A verdict in words that a manager can read and a statistician can check."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from ...core.times import about
from ...core.words import counted
from .priority import ALL_METRICS
from .tests import MAX_EXACT, MOST_SEEDS, RANDOM_FLIPS, power_note

if TYPE_CHECKING:
    from .verdict import MethodResult, Verdict

# headings of docs/evidence.md that have the formulas behind a sentence
CLAIMS, TIERS, EQUAL, NEW_IMAGES = "the-claims", "tiers", "practically-equal", "these-test-images-and-new-ones"
ROUNDS, EARLIER, PREMISES = "seeds-in-rounds", "every-look-counts", "what-a-verdict-takes-for-granted"
WHERE = {"new images": ", for new images of this kind too", "these images": " on these test images"}


class Sentence(NamedTuple):
    """What is said, and the heading of docs/evidence.md that says how it is computed."""

    text: str
    formula: str


def sentences(verdict: Verdict) -> list[Sentence]:
    """The answer; if nothing is claimed, why; each method, best first; the tiers; then what the answer rests on."""
    others = [m for m in verdict.methods if m.standing != "baseline"]
    compared = [m for m in others if m.n_pairs]
    missing = [Sentence(text, CLAIMS) for text in _missing(verdict)]
    if not compared:
        return [Sentence(f"Nothing can be compared with {verdict.baseline} on {_label(verdict)}.", CLAIMS), *missing]
    answer = " ".join([*filter(None, [verdict.broken]), _headline(verdict, compared), *_also_counted(verdict)])
    power = Sentence(_power(verdict, compared), CLAIMS)
    claimed = any(m.standing in ("better", "withheld") for m in compared)
    return [
        Sentence(answer, PREMISES if verdict.broken else CLAIMS),
        *([] if claimed else [power]),
        *(Sentence(_method(verdict, m), _formula(m)) for m in others),
        Sentence(_tiers(verdict), TIERS),
        *(Sentence(text, TIERS) for text in _best_two(verdict)),
        *(Sentence(text, ROUNDS) for text in _left_out(verdict)),
        *missing,
        *([power] if claimed else []),
        Sentence(_how(verdict, compared), CLAIMS),
        *(Sentence(text, ROUNDS) for text in _looks(verdict)),
        *(Sentence(text, EARLIER) for text in _earlier(verdict)),
    ]


def _formula(m: MethodResult) -> str:
    if m.standing == "practically equal":
        return EQUAL
    return CLAIMS if math.isnan(m.new_low) else NEW_IMAGES


def _headline(verdict: Verdict, compared: list[MethodResult]) -> str:
    """What beats the baseline; where nothing is shown to, what looks best and what it would cost to know."""
    better, worse, withheld, equal = (
        [m for m in compared if m.standing == standing]
        for standing in ("better", "worse", "withheld", "practically equal")
    )
    if better:
        size = f"{_rounded(verdict, abs(better[0].difference))}{_points(verdict)}"
        words = f"{better[0].name} beats {verdict.baseline}: it reaches {_reached(verdict, better[0])}, {size} better"
        words += WHERE.get(better[0].holds_for, "")
        others = [m.name for m in better[1:]]
        words += f"; {', '.join(others)} beat{'s' if len(others) == 1 else ''} {verdict.baseline} too" if others else ""
    else:
        shown = "called better or worse than" if withheld else "shown to beat"
        baseline = next(m for m in verdict.methods if m.standing == "baseline")
        words = f"{_suggestion(verdict, compared)}No method is {shown} {baseline.name}, which reaches "
        words += _reached(verdict, baseline)
    tail = "".join(
        f"; {', '.join(m.name for m in some)} {'is' if len(some) == 1 else 'are'} {word}"
        for some, word in ((equal, "practically equal"), (worse, "worse"))
        if some
    )
    return f"{words}{tail}; {len(compared)} compared."


def _suggestion(verdict: Verdict, compared: list[MethodResult]) -> str:
    """The method that looks best, as long as nothing is known, and what it would take to know."""
    best, sign = compared[0], 1 if verdict.higher_is_better else -1
    if best.standing != "not separable" or not sign * best.difference > 0:
        return ""
    size = f"{_rounded(verdict, abs(best.difference))}{_points(verdict)}"
    looks = f"So far {best.name} looks best, {size} better in {counted(best.n_pairs, 'pair')}"
    if best.seeds_needed is None:
        return f"{looks}. "
    more = best.seeds_needed - best.n_pairs
    time = "" if verdict.seed_seconds is None else f" ({about(more * verdict.seed_seconds)} of computing here)"
    return f"{looks}; {counted(more, 'more seed')}{time} would probably show it. "


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
    if m.standing == "withheld":
        return f" For new images of this kind it differs by {interval}, of training this short."
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
    hedge = "Of training this short, and not as a claim: no" if withheld else "No"
    return f"{hedge} two methods of a tier are separable ({'; '.join(parts)})."


def _best_two(verdict: Verdict) -> list[str]:
    """What it would take to choose the best of a tier: another question than whether anything beats the baseline."""
    known = [best for best in verdict.best if best.n_pairs > 1 and best.difference] if verdict.left else []
    parts = []
    for best in known:
        takes = f"more than {MOST_SEEDS} pairs"
        if best.seeds_needed is not None:
            takes = f"about {best.seeds_needed} pairs, {best.seeds_needed - best.n_pairs} more"
        size = _amount(verdict, abs(best.difference))
        parts.append(f"{best.first} and {best.second} of tier {best.tier}, which differ by {size}, {takes}")
    return [f"To tell apart the best two of a tier would take: {'; '.join(parts)}."] if parts else []


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
