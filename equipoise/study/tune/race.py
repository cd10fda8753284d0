"""A race between trials: those that have no hope against the leader get no more seeds and no more epochs.

What an exhaustive search would choose is decided by means over a fixed list of seeds. So the question is not which
trial is truly better, but which will have the better mean once all seeds are done, and with every seed less is open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

ERROR = 0.05  # chance to end a trial that would have beaten the leader, over all looks at it
FIRST = 3  # trials, at least, that go ahead to show how much scores vary


@dataclass(frozen=True)
class Racer:
    """What is known of a trial; larger is better in all of it.

    `scores` has one for each seed done, at the trial's best epoch; `means` the trial's score after its first seed, its
    second, … . Where a run waits half-way, `hoped` is the mean that the trial would have if this run ended as well as
    it may. `first` is the score of the first seed when it was first seen, half-way or at its end.
    """

    scores: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    hoped: float | None = None
    first: float = -math.inf

    @property
    def seeds(self) -> int:
        return len(self.means) + (self.hoped is not None)

    @property
    def mean(self) -> float:
        return self.hoped if self.hoped is not None else self.means[-1]

    @property
    def legs(self) -> int:
        """How far it has come, in halves of runs."""
        return 2 * len(self.means) + (self.hoped is not None)


def hopeless(racers: Sequence[Racer], seeds: int, margin: float = 0.0) -> list[bool]:
    r"""Which racers are to end, in a race over so many seeds.

    Racer t with s of S seeds is compared with the leader b on these s. How far the final difference may be from the one
    seen depends on the seeds that are left alone; t ends if it surely does not win by more than `margin`:

    .. math:: \bar x_b - \bar x_t > t_{1 - \alpha} \, \hat\sigma \sqrt{2 (1/s - 1/S)} - \text{margin},
              \qquad \alpha = 0.05 / (S - 1)

    σ̂ is the noise that is left in all scores when the effects of trials and seeds are taken out, and α the share of 5 %
    that each of the looks at a trial has. The leader is the best of those with the most seeds; nobody ends before some
    have two.
    """
    noise, freedom = noise_of([np.array(racer.scores) for racer in racers])
    best = leader(racers)
    if best is None or (seeds > 1 and not freedom):
        return [False] * len(racers)
    quantile = float(special.stdtrit(freedom, 1 - ERROR / (seeds - 1))) if seeds > 1 else 0.0

    def ends(racer: Racer) -> bool:
        s = racer.seeds
        if racer is best or not 0 < s <= len(best.means) or len(racer.means) == seeds:
            return False
        reach = quantile * noise * math.sqrt(2 * (1 / s - 1 / seeds)) if s < seeds else 0.0
        return best.means[s - 1] - racer.mean > reach - margin

    return [ends(racer) for racer in racers]


def leader(racers: Sequence[Racer]) -> Racer | None:
    """The best of those with the most seeds done; None before the first."""
    most = max((len(racer.means) for racer in racers), default=0)
    return max((r for r in racers if len(r.means) == most), key=lambda r: r.means[-1]) if most else None


def who_goes_on(wave: Sequence[Racer], others: Sequence[Racer], seeds: int) -> list[bool]:
    """Who of a wave gets more now: those that have come least far. Nobody in it is to end, or has all seeds.

    While nobody can be judged, because there is no leader or no second seed to tell how much scores vary, the better
    half goes ahead, at least `FIRST`, and the others wait.
    """
    ahead = list(range(len(wave)))
    if is_blind([*wave, *others], seeds):
        ahead = sorted(ahead, key=lambda place: -wave[place].first)[: max(FIRST, math.ceil(len(wave) / 2))]
    least = min(wave[place].legs for place in ahead)
    return [place in ahead and racer.legs == least for place, racer in enumerate(wave)]


def is_blind(racers: Sequence[Racer], seeds: int) -> bool:
    """Whether nobody can be judged yet."""
    return leader(racers) is None or (seeds > 1 and not noise_of([np.array(racer.scores) for racer in racers])[1])


def hoped_end(part: Sequence[float], finished: Sequence[Sequence[float]]) -> float:
    r"""The best score that a run may end with after its first e = len(part) of E epochs, by what finished runs did.

    With m(e) the best score up to epoch e, run i says that one can gain m_i(E) - m_i(e) from here to the end; and, for
    this one may only have begun to learn later, that from m(e), which run i had after a_i epochs, the E - e epochs that
    are left lead to m_i(a_i + E - e):

    .. math:: \max_i \max(m(e) + m_i(E) - m_i(e),\ m_i(a_i + E - e)), \qquad a_i = \min\{a \le e : m_i(a) \ge m(e)\}

    Infinite where no run has finished.
    """
    hopes = [math.inf] if not finished else []
    now, e = max(part), len(part)
    for curve in finished:
        best = np.maximum.accumulate(np.array(curve))
        hopes.append(now + float(best[-1] - best[e - 1]))
        if best[e - 1] >= now:
            hopes.append(float(best[int(np.argmax(best >= now)) + len(best) - e]))
    return max(hopes)


def noise_of(rows: Sequence[np.ndarray]) -> tuple[float, int]:
    """Standard deviation of a score about the sum of its trial's and its seed's effect; and its degrees of freedom.

    The worst quarter of the trials is left out: trainings that diverge are noisier, and need no fine test.
    """
    known = sorted((row for row in rows if len(row) > 1), key=lambda row: -row.mean())
    known = known[: max(FIRST, math.ceil(0.75 * len(known)))]
    if not known:
        return math.nan, 0
    trial = np.repeat(np.arange(len(known)), [len(row) for row in known])
    seed = np.concatenate([np.arange(len(row)) for row in known])
    design = np.hstack([np.eye(len(known))[trial], np.eye(seed.max() + 1)[seed][:, 1:]])
    freedom = len(trial) - design.shape[1]
    x = np.concatenate(known)
    rest = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
    return (math.sqrt(float(rest @ rest) / freedom), freedom) if freedom > 0 else (math.nan, 0)
