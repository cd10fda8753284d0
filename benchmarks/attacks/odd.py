"""Values that nobody meant: for study files and for the parameters of methods."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

NUMBERS = ("0", "1", "-1", "2", "3", "0.5", "-0.0", "1e-300", "1e300", "1e400", "-1e9", "1_000_000_000", "9" * 18)
BIG = ("9" * 30, "9" * 400, "9" * 4301, "0x" + "f" * 5000, "1" + "0" * 12)
TEXTS = ('""', '"none"', '"x"', '"../../x"', '"/"', '"."', '"a/b"', '"x[/b]"', '"\\u001b[31m"', '"\\u0000"', '"é"')
LONG = ('"' + "x" * 300 + '"', '"' + "(" * 500 + '"', '"' + "é" * 5000 + '"')
TOML_ONLY = ("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "nan", "inf", "-inf", "true", "false", "{}", "{a = 1}")
NESTED = ("[" * 50 + "]" * 50, "[" * 3000 + "]" * 3000, "{a = " * 500 + "1" + "}" * 500)
LISTS = ("[]", "[1]", "[1, 1]", "[0.5, 1]", '["x"]', "[[1]]", "[-1, 2]", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "[{a = 1}]")

PYTHON_ONLY = (
    "None",
    "True",
    "False",
    "()",
    "(1,)",
    "[0.5]",
    "{}",
    "{'a': 1}",
    "{[]: 1}",
    "{1, 2}",
    "b'x'",
    "1j",
    "...",
)
CALLS = (
    "-'x'",
    "f''",
    "lambda: 0",
    "__import__('os')",
    "1 if 1 else 2",
    "9**9**9",
    "-" * 500 + "1",
    "(" * 150 + ")" * 150,
)


def odd_literal(rng: random.Random) -> str:
    """As TOML writes it."""
    return rng.choice(rng.choice((NUMBERS, NUMBERS, TEXTS, TEXTS, LISTS, TOML_ONLY, BIG, LONG, NESTED)))


def odd_argument(rng: random.Random) -> str:
    """As a parameter of a method, in the text of a recipe."""
    pools = (NUMBERS, NUMBERS, PYTHON_ONLY, TEXTS, CALLS, BIG, LISTS[:7])
    chosen = rng.choice(rng.choice(pools))
    return repr(rng.choice((rng.random(), rng.uniform(-2, 50), rng.randint(-3, 40)))) if rng.random() < 0.2 else chosen


@cache
def registry() -> list[Any]:
    from equipoise.core import cards

    return cards()


def odd_spec(rng: random.Random) -> str:
    """A method's name with odd parameters."""
    return spec_of(rng.choice(registry()), rng)


def spec_of(card: Any, rng: random.Random) -> str:
    """Some of a method's parameters, most of them odd; now and then one that it does not have, or a broken text."""
    names = [name for name in card.parameters if rng.random() < 0.6]
    parts = [f"{name}={odd_argument(rng)}" for name in names]
    if rng.random() < 0.05:
        parts.append(rng.choice(("nothing=1", odd_argument(rng), "**{}", f"{names[0]}=1" if names else "=")))
    text = f"{card.name}({', '.join(parts)})"
    return text[: rng.randrange(len(text) + 1)] if rng.random() < 0.03 else text
