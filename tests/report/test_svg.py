"""Tags, scales, and colours that can be told apart."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import equipoise.report
from equipoise.report.render.svg import COLOURS, SHAPES, Scale, colour, decimals, limits, marker

CSS = (Path(equipoise.report.__file__).parent / "render" / "page.css").read_text()


def palette(theme):
    """The colours of page.css by name, as linear light."""
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", CSS)
    values = {name: (light, dark)[theme == "dark"] for name, light, dark in found}
    srgb = {name: np.array([int(v[i : i + 2], 16) for i in (1, 3, 5)]) / 255 for name, v in values.items()}
    return {name: np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4) for name, v in srgb.items()}


def contrast(a, b):
    """As the web's accessibility guidelines define it."""
    light, dark = sorted((float(c @ [0.2126, 0.7152, 0.0722]) for c in (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(linear):
    """CIE Lab of linear sRGB, white D65."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(np.clip(xyz / [0.9505, 1.0, 1.089], 1e-9, None))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira, Fernandes 2009: what is seen without one kind of cone, in linear light
BLIND = {
    "none": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "protan": [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
    "deutan": [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881],
}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_marks_stand_out(theme):
    colours = palette(theme)
    for name in ("ink", "muted", "accent"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    for name in (f"c{i}" for i in range(COLOURS + 1)):
        assert contrast(colours[name], colours["paper"]) >= 3, name


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eyes", BLIND)
def test_colours_can_be_told_apart(theme, eyes):
    colours, cones = palette(theme), np.reshape(BLIND[eyes], (3, 3))
    seen = {name: lab((cones @ colours[name]).clip(0, 1)) for name in (f"c{i}" for i in range(COLOURS + 1))}
    for a, b in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 10, (a, b)


def test_no_two_methods_look_alike():
    looks = {str(marker(i, 0.0, 0.0, 4.0)) + colour(i) for i in range(COLOURS * SHAPES + 1)}
    assert len(looks) == COLOURS * SHAPES + 1
    assert len({colour(i) for i in range(COLOURS * SHAPES + 1)}) == COLOURS * SHAPES + 1  # lines have no marks


@pytest.mark.parametrize(
    ("low", "high", "log", "expected"),
    [
        (0, 1, False, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (-3.2, 11, False, [-2, 0, 2, 4, 6, 8, 10]),
        (0.02, 3, True, [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]),
        (1e-6, 1e3, True, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000]),
    ],
)
def test_ticks_are_round(low, high, log, expected):
    assert Scale(low, high, 0, 100, log).ticks() == pytest.approx(expected)


def test_scale_and_limits():
    assert Scale(0, 10, 100, 200)(2.5) == 125
    assert Scale(0, 10, 200, 100)(2.5) == 175  # from the right to the left
    assert Scale(0, 10, 100, 200)(99) == 200  # beyond the limits it stays at the edge
    assert Scale(1, 100, 0, 10, log=True)(10) == pytest.approx(5)
    assert limits([0, 1], [-9, 9], reach=0.5, pad=0) == (-0.5, 1.5)
    low, high = limits([0.0, 0.0])
    assert low < 0 < high
    assert limits([], []) == pytest.approx((-0.05, 1.05))
    assert [decimals(t) for t in ([0, 2, 4], [0, 0.5], [0.01, 0.02], [3])] == [0, 1, 2, 0]


def test_limits_of_values_that_rounding_alone_tells_apart():
    low, high = limits([1.0, 1.0 + 2e-16], [1.0])
    assert (low, high) == pytest.approx((0.95, 1.05))
    assert decimals(Scale(low, high, 0, 100).ticks()) < 4
