"""Study files and parameters as mistakes, accidents and malice write them, for the tests and for `attack.py`.

`mutated_study` and `random_parameters` make one from a `random.Random`; `read_study` and `read_parameters` read it as
the command line does. What they return is the sentence a user would meet, None where all is well; whatever they raise
is a fault of ours.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from equipoise.core import EquipoiseError, Spec, cards
from equipoise.study import Study
from equipoise.train import Recipe

WHOLE = """\
name = "whole"
question = "What beats plain?"
baseline = "plain"
metric = "balanced_accuracy"
seeds = 3
progress = false
[task]
name = "blobs"
imbalance = "long_tailed"
ratio = 10
valid = 0.2
n_max = 60
[base]
model = "cnn_small(width=4)"
norm = "ghost(ghost_size=8)"
epochs = 4
batch_size = 16
lr = 0.1
warmup = 1
ema = 0.99
schedule = "steps(at=(0.5, 0.8), factor=0.1)"
[tune]
trials = 4
sampler = "random"
seeds = [0, 1]
[tune.space]
lr = [0.05, 0.1, 0.2]
weight_decay = {low = 1e-5, high = 1e-3, scale = "log"}
[tuned]
study = "before"
trials = 12
sampler = "tpe"
runs = 2
refit = true
[methods.plain]
[methods.focal]
loss = "focal(gamma=1.0)"
space.loss.gamma = [0.5, 1.0, 2.0]
[methods."MFW w/ DRW"]
preset = "MFW w/ DRW"
[methods.cosine]
head = "cosine(tau=0.1)"
augment = "crop_flip(pad=1)"
[methods.adjusted]
posthoc = "logit_adjust(tau=1.0)"
"""

SMALL = """\
baseline = "plain"
priority = "worst_class"
[task]
name = "digits"
[methods.plain]
[methods.drw]
loss = "ldam"
weighting = "effective_number(beta=0.999, start=0.8)"
"""

# values by themselves, as TOML writes them
VALUES = (
    *("0", "-1", "1", "2", "1000000000", "1000000000000", "-9223372036854775808", "9223372036854775808"),
    *("0.0", "-0.0", "0.5", "-1.5", "1e-300", "1e300", "1e999", "inf", "-inf", "nan", "9" * 400, "9" * 4301),
    *("0x" + "f" * 5000, "1_000", "0b101", "true", "false", '""', '" "', '"x"', '"none"', '"None"', '"true"', '"3"'),
    *('"../../x"', '"/"', '"."', '".."', '"a/b"', '"nul\\u0000"', '"\\u001b[31mred"', '"x[/b]"', '"[bold]x"'),
    *('"' + "x" * 300 + '"', '"' + "x" * 100_000 + '"', '"é́τ木"', '"\\uFFFF"', '"a\\nb"', "'''\na\nb'''"),
    *("[]", "[[]]", "[0]", "[0, 0]", '["a", 1]', "[nan]", "[1e999, 2.0]", "{}", "{a = 1}", "{values = []}", "[{}]"),
    *('{low = 1, high = 0}', '{values = [1, "a"]}', '{low = nan, high = 1.0, scale = "log"}', "{scale = 3}"),
    *("{prior = {a = nan}}", "{prior = [1e999, 1]}", "{costs = [[1, -1]]}", "{prior = 3, x = 1}", "{costs = {a = {}}}"),
    *("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "[1979-05-27]", "{a = 07:32:00}"),
    *("[" * 50 + "]" * 50, "[" * 3000 + "]" * 3000, "{a=" * 3000 + "1" + "}" * 3000),
)  # fmt: skip

# values of parameters, as a method's text writes them
LITERALS = (
    *("0", "-1", "1", "2", "3", "16", "1000000000", "10" * 10, "9" * 400, "-" + "9" * 400, "9" * 4301),
    *("0x" + "f" * 5000, "0.0", "-0.0", "0.5", "1.0", "-0.5", "1e-300", "1e300", "1e999", "-1e999", "nan", "1j"),
    *("1+2j", "True", "False", "None", "'x'", "''", "b'x'", "'none'", "'stage1'", "'variance'", "'../x'", "'nul\\x00'"),
    *("()", "(0.5,)", "(0.5, 0.9)", "(1, 2, 3)", "[0.1]*10", "[]", "['a']", "[[1]]", "{}", "{[]: 1}", "{1}"),
    *("{'a': 1}", "(1e999, 1)", "(True, 'x')", "...", "f()", "x", "-'a'", "--1", "'x' * 10", "lambda: 1"),
    *("(" * 150 + ")" * 150, "[" * 5000 + "]" * 5000, "-" * 20_000 + "1", "'" + "x" * 10_000 + "'"),
)  # fmt: skip

_CHARACTERS = "abcxyz019.,;:=[](){}'\"#-+_/\\ \n\t\0\x1b\x7f é木\u202e\U0001f600"


def mutated_study(rng: random.Random) -> str:
    """A study file with one to four changes, large and small."""
    text = rng.choice((WHOLE, WHOLE, WHOLE, SMALL))
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        text = rng.choice(_MUTATIONS)(text, rng)
    return text


def random_parameters(rng: random.Random) -> str:
    """A registered method, network, schedule or task, with parameters of which one at least is strange."""
    entry = rng.choice([entry for entry in cards() if entry.parameters or rng.random() < 0.1])
    names = list(entry.parameters)
    chosen = rng.sample(names, rng.randint(1, len(names))) if names else []
    given = [f"{name}={rng.choice(LITERALS)}" for name in chosen]
    if rng.random() < 0.05:
        given.append(f"{rng.choice(['other', 'gama', 'class_counts', 'self', 'in'])}={rng.choice(LITERALS)}")
    return f"{entry.name}({', '.join(given)})"


def read_study(text: str) -> str | None:
    """Read `text` as the file of a study."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "asked.toml")
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return _sentence(lambda: Study.from_toml(path))


def read_parameters(text: str) -> str | None:
    """Read `text` as a choice of each kind that has a member of this name; None where one kind takes it."""
    name = text.partition("(")[0]
    told = [_sentence(lambda kind=entry.kind: _read_as(kind, text)) for entry in cards() if entry.name == name]
    return None if None in told else "\n".join(map(str, told))


def _read_as(kind: str, text: str) -> None:
    if kind == "task":
        Recipe.make({}, {"name": text})
        Spec.parse(text).build(kind)
    else:
        Recipe.make({"model": "cnn_small(width=4)", kind: text}, {"name": "blobs"})


def _sentence(read: Callable[[], object]) -> str | None:
    try:
        read()
    except EquipoiseError as error:
        return str(error)
    return None


def _other_value(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    at = rng.choice([i for i, line in enumerate(lines) if "=" in line] or [0])
    key = lines[at].partition("=")[0].strip()
    lines[at] = f"{key} = {rng.choice(VALUES)}"
    return "\n".join(lines) + "\n"


def _other_parameters(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    at = rng.choice([i for i, line in enumerate(lines) if "(" in line] or [0])
    key = lines[at].partition("=")[0].strip()
    quote = "'''" if '"' in (spec := random_parameters(rng)) or "\\" in spec else '"'
    lines[at] = f"{key} = {quote}{spec}{quote}"
    return "\n".join(lines) + "\n"


def _other_key(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    at = rng.choice([i for i, line in enumerate(lines) if "=" in line] or [0])
    keys = ("seeds", "name", "space", "test", "valid_per_class", "preset", "''", '"\\u0000"', "a.b.c", "é", "epochs")
    lines[at] = f"{rng.choice(keys)} = {lines[at].partition('=')[2] or 1}"
    return "\n".join(lines) + "\n"


def _added_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    key = rng.choice(
        ("affine_decay", "nesterov", "precision", "final_decay", "momentum", "stage", "sampler", "mix", "x")
    )
    lines.insert(rng.randrange(len(lines) + 1), f"{key} = {rng.choice(VALUES)}")
    return "\n".join(lines) + "\n"


def _other_table(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    tables = [i for i, line in enumerate(lines) if line.startswith("[")]
    names = (
        "task",
        "base",
        "methods",
        "tune",
        "tune.space",
        "tuned",
        "methods.''",
        'methods."a\\u001b[0m"',
        "[methods]",
    )
    if tables:
        lines[rng.choice(tables)] = f"[{rng.choice((*names, '.'.join(['a'] * 2000), 'methods.plain.space'))}]"
    return "\n".join(lines) + "\n"


def _moved_lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.randrange(3)
    if change == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif change == 1:
        del lines[min(a, b) : max(a, b)]
    else:
        lines.insert(b, lines[a])
    return "\n".join(lines) + "\n"


def _other_characters(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice((1, 2, 5, 40))):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice((*_CHARACTERS, "")) + text[at + rng.randrange(2) :]
    return text


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text) + 1)]


_MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    *(_other_value, _other_value, _other_value, _other_parameters, _other_parameters),
    *(_other_key, _added_line, _other_table, _moved_lines, _other_characters, _cut),
)
