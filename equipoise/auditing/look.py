"""One look at every file: can it be read, what kind of image is it, and what does it show in a few pixels."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.progress import Progress
from ..data import Frame
from ..data.decode import LARGE, ORIENTATION, TURNS, import_pillow, opened, pixels_of, read_content

SIDE = 24  # pixels of a small view: 1.7 kB for each image, so that a million fit into memory
_KEPT = Frame(SIDE, keep=2 * SIDE)
READERS = 8  # threads: decoding happens outside Python
TOGETHER = 256  # files between two looks at the keyboard
TINY = 16  # pixels of a short side


@dataclass(frozen=True)
class Seen:
    """What was found in a file. `problem` says why it cannot be read; `marks` are names of `KINDS`."""

    problem: str | None = None
    marks: frozenset[str] = frozenset()
    width: int = 0
    height: int = 0
    digest: bytes = b""


# what an image can be (one, several), and what that means for training
KINDS = {
    "tiny": (
        ("tiny image", "tiny images"),
        f"Fewer than {TINY} pixels on a side: there is little to see. Look for larger copies, or take them away.",
    ),
    "huge": (
        ("huge image", "huge images"),
        f"More than {LARGE / 1e6:.0f} million pixels: reading takes long. Saved smaller, nothing is lost.",
    ),
    "blank": (
        ("blank image", "blank images"),
        "One colour all over: often an empty scan, a failed download or a placeholder.",
    ),
    "grey": (
        ("grey image among coloured ones", "grey images among coloured ones"),
        "They are read as three equal channels. If most of one class are grey, a network may learn that and no more.",
    ),
    "coloured": (
        ("coloured image among grey ones", "coloured images among grey ones"),
        "If most of one class are coloured, a network may learn that and no more.",
    ),
    "cmyk": (
        ("CMYK image", "CMYK images"),
        "Colours for print. They are converted without their profile, and look a little different.",
    ),
    "16-bit": (
        ("image of 16 bits", "images of 16 bits"),
        "They are divided by 257, so that white stays white; what uses few of the 65,536 levels becomes very dark.",
    ),
    "transparent": (("transparent image", "transparent images"), "White shows through."),
    "animated": (
        ("image of several frames", "images of several frames"),
        "The first frame is read, and the others are not.",
    ),
    "turned": (
        ("image turned by EXIF", "images turned by EXIF"),
        "They are read upright, as the camera notes; a tool that ignores EXIF sees them turned.",
    ),
}


def look_at(paths: Sequence[Path], progress: Progress) -> tuple[list[Seen], NDArray[np.uint8]]:
    """What is in each file, and its small view (N, side, side, 3), which is of no use where it cannot be read."""
    import_pillow()
    views = np.zeros((len(paths), SIDE, SIDE, 3), np.uint8)
    found: list[Seen] = []
    with ThreadPoolExecutor(READERS) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, of what is then read all the same or refused
        for start in range(0, len(paths), TOGETHER):
            for row, (seen, view) in enumerate(pool.map(_look, paths[start : start + TOGETHER]), start):
                found.append(seen)
                if view is not None:
                    views[row] = view
            progress("reading images", len(found), len(paths))
    return found, views


def _look(path: Path) -> tuple[Seen, NDArray[np.uint8] | None]:
    digest = b""
    try:
        content = read_content(path)
        digest = hashlib.sha256(content).digest()
        if not content:
            return Seen("it is empty, 0 bytes", digest=digest), None
        with opened(content) as image:
            size, marks = image.size, _marks(image)
            view = _small(pixels_of(image, _KEPT))
            marks |= _marks_of_pixels(image, view)
            # last, because it reads the pixels too, and errors of that would go unnoticed
            orientation = _orientation(image)
        width, height = size if orientation < 5 else size[::-1]
        marks |= {"turned"} if orientation > 1 else set()
        return Seen(None, frozenset(marks), width, height, digest), view
    except ValueError as error:
        return Seen((digest and _disguised(content)) or str(error), digest=digest), None


def _orientation(image: Any) -> int:
    try:
        noted = image.getexif().get(ORIENTATION)
        return int(noted) if noted in TURNS else 1
    except Exception:  # notes that cannot be read turn nothing
        return 1


def _marks(image: Any) -> set[str]:
    """What the head of a file tells, before its pixels are read."""
    width, height = image.size
    raw = str(image.tile[0][3]) if getattr(image, "tile", None) else ""
    marks = {
        "tiny": min(width, height) < TINY,
        "huge": width * height > LARGE,
        "cmyk": image.mode == "CMYK",
        "16-bit": image.mode.startswith("I;16")
        or (image.mode == "I" and image.format in ("PNG", "PPM"))
        or "16" in raw,
        "animated": getattr(image, "n_frames", 1) > 1,
    }
    return {name for name, is_so in marks.items() if is_so}


def _marks_of_pixels(image: Any, view: NDArray[np.uint8]) -> set[str]:
    alpha = image.getchannel("A").getextrema()[0] < 255 if image.mode in ("LA", "PA", "RGBA") else False
    levels = view.astype(np.int16)
    marks = {
        "transparent": alpha or "transparency" in image.info,
        "grey" if _is_grey(levels) else "coloured": True,
        "blank": int(levels.max()) - int(levels.min()) <= 2,
    }
    return {name for name, is_so in marks.items() if is_so}


def _is_grey(levels: NDArray[np.int16]) -> bool:
    return int((levels.max(2) - levels.min(2)).max()) <= 2  # JPEG may tint by a level


def _small(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """All of an image as a square, whatever its shape."""
    pillow = import_pillow()
    view: NDArray[np.uint8] = np.asarray(pillow.fromarray(pixels).resize((SIDE, SIDE), pillow.Resampling.BILINEAR))
    return view


def _disguised(content: bytes) -> str | None:
    """What a file is that only its name makes one of ours."""
    kinds = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIF", b"avif": "AVIF", b"crx ": "a camera's raw format"}
    kind = kinds.get(content[8:12]) if content[4:8] == b"ftyp" else None
    if content[:256].lstrip()[:9].lower() in (b"<!doctype", b"<html>"):
        return "it is a web page, perhaps a failed download"
    return f"it is {kind} in spite of its name: save it as JPEG or PNG" if kind else None
