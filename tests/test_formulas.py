"""Docstrings for a terminal: every method's without a rest of TeX, and in lines as long as it is wide."""

import inspect

import pytest

from equipoise.core import cards
from equipoise.core.docstrings import reflowed
from equipoise.core.formulas import plain_text


@pytest.mark.parametrize("card", cards(), ids=lambda card: f"{card.kind}-{card.name}")
def test_no_tex_is_left(card):
    text = plain_text(inspect.getdoc(card.factory) or "")
    for tex in ("\\", ":math:", "math::", "frac", "mathrm", "{\\", "Big(", "Big[", "Bigl", "Bigr"):
        assert tex not in text, tex


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\frac{1 - \beta^n}{1 - \beta}", "(1 - β^n) / (1 - β)"),
        (r"\frac1N \sum_i w_i", "1 / N Σ_i w_i"),
        (r"\tfrac12 \sigma\!\left(x\right)", "1 / 2 σ(x)"),
        (r"e^{-\lVert x \rVert^2}", "e^(-‖ x ‖^2)"),
        (r"\mathrm{clip}_{1/r_{\max}}^{r_{\max}} \{a\}", "clip_(1/r_max)^r_max {a}"),
        (r"s(N_y) \, b_n, \quad x", "s(N_y) b_n,    x"),
        (r"\hat{\bar x}_h \to \infty", "x̄̂_h → ∞"),
    ],
)
def test_a_formula_as_text(tex, text):
    assert plain_text(f"a :math:`{tex}` b") == f"a {text} b"


@pytest.mark.parametrize("card", cards(), ids=lambda card: f"{card.kind}-{card.name}")
def test_prose_is_filled_and_no_word_lost(card):
    text = plain_text(inspect.getdoc(card.factory) or "")
    narrow = reflowed(text, 60)
    assert narrow.split() == text.split()
    as_it_is = set(text.splitlines())
    assert [line for line in narrow.splitlines() if len(line) > 60 and line not in as_it_is] == []


def test_what_is_no_prose_stays_as_it_is():
    parts = (
        "One.",
        "- a\n- list",
        "1. and\n2. another",
        "    x = 1,\n    y = 2",
        "Example:\n    >>> f(\n    ...  1)",
        "    2",
    )
    text = "\n\n".join(parts)
    assert reflowed(text, 80) == text
