"""Formulas of docstrings, which are TeX for the documents, as plain text for a terminal."""

from __future__ import annotations

import re

_SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ",
    "lambda": "λ", "mu": "μ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "Delta": "Δ", "Sigma": "Σ",
    "Omega": "Ω", "omega": "ω", "ell": "ℓ", "sum": "Σ", "prod": "Π", "cdot": "·", "odot": "⊙", "times": "×", "sim": "~",
    "in": "∈", "notin": "∉", "neq": "≠", "ne": "≠", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "approx": "≈",
    "infty": "∞", "partial": "∂", "nabla": "∇", "top": "ᵀ", "to": "→", "leftarrow": "←", "pm": "±", "mid": "|",
    "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "|": "‖", "lfloor": "⌊", "rfloor": "⌋", "langle": "⟨",
    "rangle": "⟩", "dots": "…", "ldots": "…", "cdots": "…", "{": "{", "}": "}", "!": "",
    "quad": "  ", "qquad": "    ", "left": "", "right": "", "bigl": "", "bigr": "", "big": "", "displaystyle": "",
    "textstyle": "", "Big": "", "Bigl": "", "Bigr": "", "propto": "∝", "bigcup": "∪", " ": " ", "\\": "\n",
}  # fmt: skip
_MARKS = {"tilde": "\u0303", "hat": "\u0302", "bar": "\u0304", "overline": "\u0304"}  # put on the letter before them
_BRACED = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"  # up to three levels, which is as deep as ours go


def plain_text(docstring: str) -> str:
    """A docstring with its formulas as a terminal can show them.

    >>> print(plain_text("It is\\n\\n.. math:: (1 - p_y)^\\\\gamma\\n\\nwith :math:`p = \\\\frac{a}{1 + b}`."))
    It is
    <BLANKLINE>
        (1 - p_y)^γ
    <BLANKLINE>
    with p = a / (1 + b).
    """
    lines, formula = [], False
    for line in docstring.splitlines():
        if line.lstrip().startswith(".. math::"):
            formula, rest = True, line.partition("::")[2].strip()
            if rest:
                lines.append("    " + _formula(rest))
            continue
        if formula and line.strip() and not line.startswith(" "):
            formula = False
        if formula and line.strip():
            lines += ["    " + part.strip() for part in _formula(line.strip()).splitlines()]
        else:
            lines.append(re.sub(r":math:`([^`]*)`", lambda match: _formula(match[1]), line))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _formula(tex: str) -> str:
    """One formula.

    >>> _formula(r"\\sigma_i^2 = \\alpha E[x_i^2] + (1 - \\alpha) m_{x^2}")
    'σ_i^2 = α E[x_i^2] + (1 - α) m_x^2'
    >>> _formula(r"\\tilde x = \\sqrt{v + \\epsilon}, \\quad n_c^{-1/4}")
    'x̃ = √(v + ε),   n_c^(-1/4)'
    """
    tex = re.sub(r"\\(?:begin|end)\{\w+\}|(?<!\\)&", "", tex)
    tex = re.sub(r"\s*\\[,;]\s*", " ", tex)
    tex = re.sub(r"\\([td]?frac)(\w)(?:(\w)|(?=\{))", r"\\\1{\2}{\3}", tex).replace("{}{", "{")  # \frac1N
    before = None
    while before != tex:  # from the inside out
        before = tex
        tex = re.sub(rf"\\[td]?frac{_BRACED}{_BRACED}", lambda m: f"{_grouped(m[1])} / {_grouped(m[2])}", tex)
        tex = re.sub(rf"\\sqrt{_BRACED}", r"√(\1)", tex)
        tex = re.sub(rf"\\(?:text|mathrm|operatorname|mathbf|mathcal|mathbb){_BRACED}", r"\1", tex)
    for _ in range(2):  # a mark on a marked letter
        tex = re.sub(r"\\(tilde|hat|bar|overline)\s*(?:\{(\w[\u0303\u0302\u0304]?)\}|\\?(\w+))", _marked, tex)
    tex = re.sub(rf"\^{_BRACED}", lambda m: f"^{_grouped(m[1])}", tex)
    tex = re.sub(rf"_{_BRACED}", lambda m: f"_{m[1]}" if re.fullmatch(r"[\w\\^]+", m[1]) else f"_({m[1]})", tex)
    tex = re.sub(r"(?<!\\)[{}]", "", tex)  # what is left of them only groups
    tex = re.sub(r"\\([A-Za-z]+|.)", lambda m: _SYMBOLS.get(m[1], m[1]), tex)
    return re.sub(r"(?<=\S) {5,}", "    ", tex).strip()


def _grouped(part: str) -> str:
    """In parentheses where it is more than one thing."""
    return part if re.fullmatch(r"\\?[\w'.]+(?:_\{?\\?\w+\}?)?", part.strip()) else f"({part})"


def _marked(match: re.Match[str]) -> str:
    if match[2]:
        return match[2] + _MARKS[match[1]]
    word = _SYMBOLS.get(match[3], match[3])
    return word[0] + _MARKS[match[1]] + word[1:]
