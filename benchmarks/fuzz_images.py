"""A thousand damaged, odd and hostile image files, through the audit, the reading of `compare`, and `predict`.

    python benchmarks/fuzz_images.py [--files 1000] [--seed 0] [--keep FOLDER]

Every file is made from its number and the seed: cut, with bytes changed, with another format's header, declaring 60,000
× 60,000 pixels, really having 120 million, a link out of the folder, a pipe, a device; half of them under names with
line breaks, escape sequences, HTML, formulas, marks that turn the reading direction, and bytes that are no text.

Wrong is: an exception, a file outside the folder that is opened, a name that reaches a terminal, a table or a page as
anything but text, an image that is counted twice or not at all. Memory is what the process came to hold beyond what it
held at the start; one that hangs is stopped after ten minutes with a traceback. The exit code is 1 where anything is
wrong.
"""

from __future__ import annotations

import argparse
import csv
import faulthandler
import io
import os
import random
import resource
import struct
import sys
import tempfile
import time
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from attacks.images import LIKELY, png
from PIL import Image
from predict import untrained_model

from equipoise.auditing import Audit, audit, print_audit
from equipoise.core import EquipoiseError
from equipoise.core.terminal import Terminal
from equipoise.data import load_task
from equipoise.deploy import find_images, predict
from equipoise.deploy.predictions import Predictions, Writer
from equipoise.front.comparison import _task

SECONDS = 600  # after which it hangs
SIDE = 60_000  # pixels that bombs declare
LARGE = 11_000  # pixels on a side of images that are just small enough to be read
CLASSES = ("cat", "<b>dog</b>", "=1+1", "x\u202ey", "two\nlines", "\x1b[31mred")
NAMES = (
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)<",
    "line\nbreak",
    "\u202egnp.exe",
    "\x1b]0;title\x07",
    "=cmd|'!A1'",
    '+1,"2"',
    "@sum",
    "-1",
    "{{ 7 * 7 }}",
    "[bold]x[reset]",
    "bytes \udcff\udc80",
    "\u2028\u2066",
    "x" * 200,
)
TAGS = ("<img src=x", "<script>alert", "<b>dog")  # of names, where they would be obeyed
FORMULA = tuple("=+-@\t\r")
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
HELD = resource.getrusage(resource.RUSAGE_SELF)


# -- files -------------------------------------------------------------------------------------------------------------


def photo(folder: Path, rng: random.Random) -> None:
    """A good image, unlike any other."""
    small = Image.frombytes("RGB", (6, 6), rng.randbytes(108))
    small.resize((rng.randint(20, 90), rng.randint(20, 90)), Image.Resampling.BICUBIC).save(folder / "x.png")


def bomb(folder: Path, rng: random.Random) -> None:
    """A few bytes that declare 3.6 thousand million pixels."""
    tags = [(256, SIDE), (257, SIDE), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, SIDE), (279, 100)]
    tiff = b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags))
    tiff += b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags) + bytes(104)
    made = {
        "png": png(struct.pack(">IIBBBBB", SIDE, SIDE, 8, rng.choice((0, 2, 6)), 0, 0, 0), zlib.compress(bytes(1000))),
        "gif": struct.pack("<6sHHBBB", b"GIF89a", SIDE, SIDE, 0, 0, 0)
        + struct.pack("<sHHHHB", b",", 0, 0, SIDE, SIDE, 0) + b"\x08\x02\x4c\x01\0;",
        "tif": tiff,
        "bmp": struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 100, 0, 0, 54, 40, SIDE, SIDE, 1, 24, *(0,) * 6) + bytes(46),
        "ppm": b"P6\n%d %d\n255\n" % (SIDE, SIDE) + bytes(30),
    }  # fmt: skip
    suffix = rng.choice(sorted(made))
    (folder / f"x.{suffix}").write_bytes(made[suffix])


def large(folder: Path, rng: random.Random) -> None:
    """A few hundred kilobytes that really hold 121 million pixels, of 1 to 4 channels, of 8 or 16 bits."""
    depth, kind, channels = rng.choice(((8, 0, 1), (8, 2, 3), (8, 6, 4), (16, 0, 1), (8, 4, 2)))
    row = zlib.compressobj(9)
    line = bytes(1 + LARGE * channels * depth // 8)
    data = b"".join(row.compress(line) for _ in range(LARGE)) + row.flush()
    (folder / "x.png").write_bytes(png(struct.pack(">IIBBBBB", LARGE, LARGE, depth, kind, 0, 0, 0), data))


def link_out(folder: Path, rng: random.Random) -> None:
    """To an image, or a folder of images, that lies beside the folder."""
    target = folder.parent / "outside" / rng.choice(("secret.png", ""))
    (folder / "x.png").symlink_to(target if rng.random() < 0.5 else os.path.join("../../outside", target.name))


def damaged(folder: Path, rng: random.Random) -> None:
    """One of the ways of benchmarks/attacks/images.py."""
    rng.choices([way for way, _ in LIKELY], [weight for _, weight in LIKELY])[0](folder, rng)


def ways(number: int) -> Callable[[Path, random.Random], None]:
    """What file `number` is. Large images take a second each, so there are few."""
    if number % 250 == 249:
        return large
    return (photo, damaged, damaged, bomb, damaged, photo, damaged, link_out, damaged, photo)[number % 10]


def make_files(base: Path, files: int, seed: int) -> Counter[str]:
    """So many files in base/photos, and what must not be read in base/outside."""
    (base / "outside").mkdir(parents=True)
    Image.new("RGB", (40, 40), (1, 2, 3)).save(base / "outside" / "secret.png")
    made: Counter[str] = Counter()
    for number in range(files):
        rng = random.Random(f"{seed} {number}")
        place, bench = base / "photos" / CLASSES[number // 10 % len(CLASSES)], base / "bench"
        for folder in (place, bench):
            folder.mkdir(parents=True, exist_ok=True)
        way = ways(number)
        way(bench, rng)
        (new,) = bench.iterdir()
        name = f"{rng.choice(NAMES)}{number}" if number % 2 else f"{number}"
        os.rename(new, place / f"{name}{new.suffix}")
        made[way.__name__] += 1
    bench.rmdir()
    return made


# -- what is done with them --------------------------------------------------------------------------------------------


@dataclass
class Found:
    """Seconds and megabytes of each stage, and all that was wrong."""

    made: Counter[str]
    seconds: dict[str, float] = field(default_factory=dict)
    megabytes: dict[str, float] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began, start = time.perf_counter(), HELD.ru_maxrss
        try:
            yield
        except Exception as error:
            self.wrong.append(f"{name}: {type(error).__name__}: {error}")
        self.seconds[name] = time.perf_counter() - began
        self.megabytes[name] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) / 1024


class Opened:
    """Files below a folder that this process opens, while it is watched."""

    def __init__(self) -> None:
        self.forbidden: str | None = None
        self.paths: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and self.forbidden and isinstance(args[0], str | bytes | os.PathLike):
            path = os.path.realpath(os.fsdecode(args[0]))
            if path.startswith((self.forbidden, "/etc/passwd")):
                self.paths.append(path)


def fuzz(base: Path, files: int, seed: int, watch: Opened) -> Found:
    """Make the files, and go through all that reads images."""
    found = Found(make_files(base, files, seed))
    photos, watch.forbidden = base / "photos", os.path.realpath(base / "outside")
    seen: list[Audit] = []
    with found.stage("audit"):
        seen.append(audit(photos, features="pixels", device="cpu"))
        seen[0].write(base / "audit")
    with found.stage("what the audit says"):
        check_audit(found, seen[0], base)
    with found.stage("compare's reading"):
        check_reading(found, seen[0], base)
    with found.stage("predict"):
        check_predictions(found, photos)
    watch.forbidden = None
    found.expect(not watch.paths, f"opened outside the folder: {watch.paths[:5]}")
    return found


def check_audit(found: Found, seen: Audit, base: Path) -> None:
    screen = io.StringIO()
    print_audit(seen, Terminal(file=screen, width=100))
    check_text(found, "terminal", screen.getvalue())
    check_text(found, "repr", repr(seen))
    for where, page in (("audit.html", (base / "audit" / "audit.html").read_text()), ("notebook", seen._repr_html_())):
        check_text(found, where, page)
        for tag in TAGS:
            found.expect(tag not in page, f"{where} has {tag}")
    for name in ("groups.csv", "leave_out.csv"):
        table = (base / "audit" / name).read_text(errors="surrogateescape")
        paths = [row[0] for row in csv.reader(io.StringIO(table, newline=""))][1:]
        found.expect(not any(path.startswith(FORMULA) for path in paths), f"{name} has a formula")
        found.expect(all(os.path.lexists(base / "photos" / path) for path in paths), f"{name} names what is not there")
        found.expect(len(set(paths)) == len(paths), f"{name} names a file twice")
    found.expect(len({row["file"] for row in seen.files}) == len(seen.files), "the audit counts a file twice")
    unread = sum(row["problem"] is not None for row in seen.files)
    found.told.append(
        f"{len(seen.files)} files looked at, {unread} of them cannot be read, {len(seen.findings)} findings"
    )


def check_reading(found: Found, seen: Audit, base: Path) -> None:
    """A folder with links out of it is refused in words; without them all that the audit could read is read."""
    task = _task(base / "photos", seen, None, base / "place")
    try:
        load_task(task, valid=0.2)
        found.wrong.append("a folder with links out of it was read")
    except EquipoiseError as refused:
        check_text(found, "the refusal", str(refused))
    for path in (base / "photos").rglob("*"):
        if path.is_symlink() or path.is_fifo():
            path.unlink()
    read = load_task(_task(base / "photos", seen, None, base / "place"), valid=0.2)
    expected = sum(row["problem"] is None for row in seen.files)
    count = sum(len(split) for split in (read.train, read.valid, read.test))
    found.expect(count == expected, f"{count} images are read, and the audit could read {expected}")


def check_predictions(found: Found, photos: Path) -> None:
    model = untrained_model("cnn_small", 32)
    said: Predictions = predict(model, photos)
    expected = len(find_images(photos).paths)
    found.expect(len(said) >= expected, f"{len(said)} rows for {expected} files")
    check_text(found, "predictions in a notebook", said._repr_html_())
    for form in ("csv", "jsonl"):
        out = io.StringIO()
        Writer(out, form, 1).write(said.rows())
        check_text(found, f"predictions as {form}", out.getvalue())
        if form == "csv":
            cells = [cell for row in csv.reader(io.StringIO(out.getvalue(), newline="")) for cell in row]
            found.expect(not any(cell.startswith(FORMULA) for cell in cells), "predictions have a formula")
    found.told.append(f"{sum(why is None for why in said.errors)} images classified")


def check_text(found: Found, where: str, text: str) -> None:
    """Nothing in it is obeyed by a terminal or an editor."""
    obeyed = {c for c in set(text) - set("\n\t\u200c\u200d") if unicodedata.category(c) in OBEYED}
    found.expect(not obeyed, f"{where} has {sorted(map(ascii, obeyed))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a new folder to make the files in, and to leave them")
    asked = parser.parse_args()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    with tempfile.TemporaryDirectory() as folder:
        found = fuzz(asked.keep or Path(folder), asked.files, asked.seed, Opened())
    print(", ".join(f"{n} {kind}" for kind, n in found.made.most_common()))
    for stage, seconds in found.seconds.items():
        print(f"{stage}: {seconds:.1f} s, {found.megabytes[stage]:,.0f} MB beyond the start")
    print("\n".join([*found.told, *(f"WRONG: {wrong!a}" for wrong in found.wrong)]))
    print(f"{len(found.wrong)} wrong")
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
