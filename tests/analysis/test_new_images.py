"""What is said of new images: against plain loops, a two-way bootstrap, and studies with a known truth."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from equipoise.analysis import Verdict, compare
from equipoise.analysis.statistics.new_images import ImageScores, new_images, variance_parts

NAN = math.nan


def drawn(rng, seeds, counts, image=1.0, seed=0.3):
    """Differences (seeds, N) in -1, 0, 1 that depend on the image, the seed and chance; and the classes."""
    strata = np.repeat(np.arange(len(counts)), counts)
    noise = rng.normal(size=(seeds, len(strata)))
    z = image * rng.normal(size=len(strata)) + seed * rng.normal(size=(seeds, 1)) + noise
    return np.sign(z) * (abs(z) > 1), strata


def slow_parts(d, strata, shares):
    """The formulas with loops: (mean, V_S / S, V_I, V_E)."""
    seeds, classes = len(d), sorted(set(strata))
    pi = np.array([shares[c] for c in classes]) / sum(shares[c] for c in classes)
    scores = [sum(p * d[s, strata == c].mean() for p, c in zip(pi, classes, strict=True)) for s in range(seeds)]
    v_images = v_rest = 0.0
    for p, c in zip(pi, classes, strict=True):
        own = d[:, strata == c]
        n = own.shape[1]
        rest = own - own.mean(axis=0) - own.mean(axis=1, keepdims=True) + own.mean()
        v_images += p**2 / n * np.var(own.mean(axis=0), ddof=1)
        v_rest += p**2 / n * (rest**2).sum() / ((seeds - 1) * (n - 1)) / seeds
    return np.mean(scores), np.var(scores, ddof=1) / seeds, v_images, v_rest


@pytest.mark.parametrize("shares", [np.ones(3), np.array([0.7, 0.2, 0.1])])
def test_parts_by_hand(shares):
    d, strata = drawn(np.random.default_rng(1), 5, (9, 6, 4))
    mean, v_seeds, v_images, v_rest = slow_parts(d, strata, shares)
    assert min(v_seeds, v_images) > v_rest  # so that nothing is cut off below
    mixed = np.random.default_rng(2).permutation(len(strata))  # images come in any order
    parts = variance_parts(d[:, mixed], strata[mixed], shares)
    assert parts.mean == pytest.approx(mean)
    assert (parts.seeds, parts.images) == (pytest.approx(v_seeds), pytest.approx(v_images - v_rest))


@pytest.mark.parametrize(("image", "seed", "enter"), [(1.5, 1.0, "SIE"), (0.0, 1.0, "S"), (1.5, 0.0, "I"), (0, 0, "E")])
def test_degrees_of_freedom_of_one_stratum(image, seed, enter):
    """Satterthwaite's, of those of the three mean squares of a table with two factors that enter."""
    d, strata = next(
        (d, strata)
        for d, strata in (drawn(np.random.default_rng(i), 4, (20,), image, seed) for i in range(100))
        if entering(d, strata) == enter
    )
    _, v_seeds, v_images, v_rest = slow_parts(d, strata, np.ones(1))
    doubts = {"S": v_seeds**2 / 3, "I": v_images**2 / 21, "E": v_rest**2 / (3 * 19 + 2)}
    total = {"SIE": v_seeds + v_images - v_rest, "S": v_seeds, "I": v_images, "E": v_rest}[enter]
    parts = variance_parts(d, strata, np.ones(1))
    assert parts.total == pytest.approx(total)
    assert parts.freedom == pytest.approx(max(3, total**2 / sum(doubts[part] for part in enter)))


def entering(d, strata):
    _, v_seeds, v_images, v_rest = slow_parts(d, strata, np.ones(1))
    return {(True, True): "SIE", (True, False): "S", (False, True): "I", (False, False): "E"}[
        bool(v_seeds > v_rest), bool(v_images > v_rest)
    ]


def test_statsmodels_finds_the_same_variance():
    """statsmodels 0.15.0, with s and i as texts and one group g for all:

    mixedlm("d ~ 1", frame, groups="g", vc_formula={"s": "0+C(s)", "i": "0+C(i)"}).fit().bse = 0.190863
    """
    d = np.array(
        [
            [1, 0, 0, 1, -1, 0, 1, 0],
            [1, 0, 1, 0, -1, 0, 0, 0],
            [1, 0, 0, 1, 0, 0, 1, -1],
            [0, 1, 0, 1, -1, 0, 1, 0],
            [1, 1, 1, 1, 0, 0, 1, 0],
        ]
    )
    parts = variance_parts(d, np.zeros(8, dtype=int), np.ones(1))
    assert math.sqrt(parts.total) == pytest.approx(0.190863, rel=1e-4)


def test_several_studies_at_once_are_the_same_as_one_by_one():
    tables = [drawn(np.random.default_rng(i), 4, (5, 3)) for i in range(3)]
    strata = tables[0][1]
    together = variance_parts(np.stack([d for d, _ in tables]), strata, np.ones(2))
    for i, (d, _) in enumerate(tables):
        assert [part[i] for part in together] == pytest.approx(list(variance_parts(d, strata, np.ones(2))))


def test_the_interval_is_student_t():
    d, strata = drawn(np.random.default_rng(1), 5, (9, 6, 4))
    parts, found = variance_parts(d, strata, np.ones(3)), new_images(d, strata, np.ones(3), confidence=0.9)
    ends = stats.t.interval(0.9, parts.freedom, parts.mean, math.sqrt(parts.total))
    assert (found.low, found.high) == pytest.approx(ends)
    t = parts.mean / math.sqrt(parts.total)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), parts.freedom))
    assert found.at_best == pytest.approx(stats.t.ppf(0.95, parts.freedom) * math.sqrt(parts.images))


def test_a_bootstrap_of_seeds_and_images_agrees():
    """Which counts the interaction three times instead of once (Owen, The pigeonhole bootstrap, 2007)."""
    rng = np.random.default_rng(4)
    d, strata = drawn(rng, 20, (80,))
    _, _, _, v_rest = slow_parts(d, strata, np.ones(1))
    rows, columns = rng.integers(0, 20, (3000, 20)), rng.integers(0, 80, (3000, 80))
    means = [d[np.ix_(r, c)].mean() for r, c in zip(rows, columns, strict=True)]
    assert np.var(means) == pytest.approx(variance_parts(d, strata, np.ones(1)).total + 2 * v_rest, rel=0.1)


def test_what_limits():
    rng = np.random.default_rng(5)
    steady, strata = drawn(rng, 6, (60,), image=3.0, seed=0.0)
    assert new_images(steady, strata, np.ones(1)).by_images
    wild, strata = drawn(rng, 6, (60,), image=0.0, seed=3.0)
    found = new_images(wild, strata, np.ones(1))
    assert not found.by_images and found.at_best < (found.high - found.low) / 4


def test_a_class_of_one_image_takes_the_variance_of_the_others():
    rng = np.random.default_rng(6)
    d, strata = drawn(rng, 5, (8, 8, 1))
    even = [slow_parts(d[:, strata == c], strata[strata == c], np.ones(3)) for c in (0, 1)]
    of_image, of_rest = (np.mean([8 * part[i] for part in even]) for i in (2, 3))  # variances of one image
    _, v_seeds, _, _ = slow_parts(np.hstack([d, d[:, strata == 2]]), np.append(strata, 2), np.ones(3))
    images = (1 / 9) * (of_image - of_rest) * (1 / 8 + 1 / 8 + 1)
    parts = variance_parts(d, strata, np.ones(3))
    assert (parts.seeds, parts.images) == (pytest.approx(v_seeds), pytest.approx(images))


def test_what_cannot_be_told():
    d, strata = drawn(np.random.default_rng(7), 3, (2, 2))
    assert math.isnan(new_images(d[:2], strata, np.ones(2)).low)  # two seeds
    assert math.isnan(new_images(d[:, [0, 2]], np.array([0, 1]), np.ones(2)).low)  # one image per class
    same = new_images(np.zeros((3, 4)), strata, np.ones(2))
    assert (same.low, same.high, same.p) == (0, 0, 1)
    ones = new_images(np.ones((3, 4)), strata, np.ones(2))
    assert (ones.low, ones.high, ones.p) == (1, 1, 0)


@pytest.mark.parametrize(("counts", "balanced"), [((40,) * 5, False), ((5,) * 10, True), ((60, 30, 10, 4), True)])
def test_the_true_difference_is_inside_as_often_as_promised(counts, balanced):
    """Differences have mean 0 here, for new images and seeds; benchmarks/simulate_evidence.py tries more."""
    rng, studies = np.random.default_rng(8), 600
    tables = [drawn(rng, 6, counts, image=1.5)[0] for _ in range(studies)]
    strata = np.repeat(np.arange(len(counts)), counts) if balanced else np.zeros(sum(counts), dtype=int)
    parts = variance_parts(np.stack(tables), strata, np.ones(len(counts)))
    covered = np.mean(abs(parts.mean) <= stats.t.ppf(0.975, parts.freedom) * np.sqrt(parts.total))
    alone = np.mean(abs(parts.mean) <= stats.t.ppf(0.975, 5) * np.sqrt(parts.seeds))
    assert 0.925 <= covered <= 0.985 and alone < 0.9


def judged(differences, strata, **arguments):
    """The verdict on methods with these differences to a baseline that is right about half of all images."""
    n = len(strata)
    base = np.tile(np.arange(n) % 2 == 0, (len(next(iter(differences.values()))), 1)).astype(float)
    values = {"plain": list(base), **{name: list(base + d) for name, d in differences.items()}}
    scores = {name: np.array([run.mean() for run in runs]) for name, runs in values.items()}
    images = ImageScores(values, strata, np.ones(1))
    return compare(scores, "plain", metric="accuracy", images=images, **arguments), scores


def test_a_verdict_says_which_claims_hold_for_new_images():
    rng, n = np.random.default_rng(9), 200
    everywhere = (rng.random((8, n)) < 0.3).astype(float)
    on_few = np.zeros((8, n))
    on_few[:, :3] = 1.0  # the same three images in every run
    on_few[:, 10] = rng.random(8) < 0.5
    verdict, scores = judged({"wide": everywhere, "lucky": on_few}, np.zeros(n, dtype=int))
    m = {row.name: row for row in verdict.methods}
    assert (m["wide"].standing, m["wide"].holds_for) == ("better", "new images")
    assert (m["lucky"].standing, m["lucky"].holds_for, m["lucky"].limited_by) == ("better", "these images", "images")
    assert m["lucky"].new_low < 0 < m["lucky"].diff_low
    for name, d in (("wide", everywhere), ("lucky", on_few)):
        alone = new_images(d, np.zeros(n, dtype=int), np.ones(1))
        assert (m[name].new_low, m[name].new_high) == pytest.approx((alone.low, alone.high))
        assert (m[name].new_low + m[name].new_high) / 2 == pytest.approx(m[name].difference)
    p = sorted(new_images(d, np.zeros(n, dtype=int), np.ones(1)).p for d in (everywhere, on_few))
    assert sorted(row.p_new for row in m.values())[:2] == pytest.approx([2 * p[0], p[1]])  # Holm
    said = " ".join(verdict.sentences())
    assert "for new images of this kind too" in said and "This is about these test images; for new images" in said
    assert (
        Verdict.from_dict(json.loads(json.dumps(verdict.to_dict(), allow_nan=False))).sentences() == verdict.sentences()
    )
    plain = compare(scores, "plain", metric="accuracy")
    assert [row.standing for row in plain.methods] == [row.standing for row in verdict.methods]
    assert {row.holds_for for row in plain.methods} == {""} and "new images" not in " ".join(plain.sentences())


def test_missing_runs_are_left_out_in_pairs():
    rng, n = np.random.default_rng(10), 50
    d = (rng.random((8, n)) < 0.3).astype(float)
    values = {"plain": [np.zeros(n)] * 8, "other": [None, *d[1:]]}
    scores = {"plain": np.zeros(8), "other": np.array([NAN, *d[1:].mean(axis=1)])}
    scores["plain"][7] = NAN  # its run was judged unfit, though its outputs are there
    images = ImageScores(values, np.zeros(n, dtype=int), np.ones(1))
    row = compare(scores, "plain", metric="accuracy", images=images).methods[0]
    alone = new_images(d[1:7], np.zeros(n, dtype=int), np.ones(1))
    assert (row.n_pairs, row.new_low) == (6, pytest.approx(alone.low))


def test_verdicts_of_earlier_versions_are_read():
    plain = compare({"plain": [0.7] * 6, "other": [0.8] * 6}, "plain").to_dict()
    for row in plain["methods"]:
        for name in ("new_low", "new_high", "p_new", "new_at_best", "limited_by", "holds_for"):
            del row[name]
    assert math.isnan(Verdict.from_dict(plain).methods[0].new_low)
