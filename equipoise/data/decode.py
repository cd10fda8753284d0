"""One image file as an array: every kind of pixel on the scale 0 to 255, upright, three channels.

* Whole numbers of 16 bits are divided by 257, so that white stays white; floating-point numbers count from 0 to 1.
  Pixels without an agreed scale (32-bit whole numbers, floats beyond 0 to 1) are refused, not guessed at.
* What is transparent shows white, as on a page.
* The orientation that a camera noted (EXIF) is applied. Of several frames the first is read. Colour profiles are not.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..core import EquipoiseError
from ..core.escaping import visible
from ..core.extras import require
from ..native.scaling import scaled_down
from .frame import Frame

# what Pillow may take a file for, whatever it is called: others of its formats start programs, or are seldom tried
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}
MAX_PIXELS = 2**27  # 134 million; a file of a few bytes may declare any size
MAX_BYTES = 2**30
LARGE = 2**24  # pixels
STRIP = 2**20  # pixels that are scaled or laid on white at a time: in between they take many times their memory

ORIENTATION = 0x0112  # EXIF's tag, and what each of its values asks for; 1 is upright
TURNS: dict[Any, str] = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
SIDEWAYS = (5, 6, 7, 8)  # those that change height and width for each other
_PHOTOMETRIC, _WHITE_IS_ZERO = 262, 0  # the tag of a TIFF that tells negatives


class DataError(EquipoiseError):
    """Data that cannot be read or is not what it was; it says nothing about the method that was to be trained on it."""


def read_image(path: Path, frame: Frame, digest: bytes | None = None) -> NDArray[np.uint8]:
    """An image (h, w, 3) as `frame` keeps it: its middle square, or the whole with a short side of at most so much.

    Raises ValueError, with the reason alone, for whatever is wrong with the file; `digest` is what its content must be.
    """
    content = read_content(path)
    if digest is not None and hashlib.sha256(content).digest() != digest:
        raise ValueError("it has changed since the folder was looked through; start again when nothing writes there")
    return decoded(content, frame)


def decoded(content: bytes, frame: Frame) -> NDArray[np.uint8]:
    """Pixels (h, w, 3) of an image file's content, as `frame` keeps them; raises ValueError, with the reason alone."""
    with opened(content) as image:
        return pixels_of(image, frame)


def upright_sides(content: bytes) -> tuple[int, int]:
    """Height and width of an image file's content, turned as its camera says; only its head is read."""
    with opened(content) as image:
        width, height = image.size
        return (width, height) if _orientation(image) in SIDEWAYS else (height, width)


def read_content(path: Path) -> bytes:
    """All of a regular file that is not too large; raises ValueError, with the reason alone."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise ValueError(f"it has {size:,} bytes, more than the {MAX_BYTES:,} that are read")
        try:
            return file.read()
        except OSError as error:
            raise ValueError(error.strerror or str(error)) from None


def open_regular(path: Path) -> BinaryIO:
    """A regular file, opened to be read; raises ValueError, with the reason alone."""
    try:
        # a pipe in place of the file must not be waited for
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    raise ValueError("it is not a regular file")


@contextmanager
def opened(content: bytes) -> Iterator[Any]:
    """A file's content as Pillow opens it. Whatever is wrong, also while it is used, is a ValueError that says why."""
    pillow = import_pillow()
    try:
        with pillow.open(io.BytesIO(content), formats=FORMATS) as image:
            _check_size(*image.size)
            yield image
    except pillow.DecompressionBombError:
        raise ValueError(_too_large("more than Pillow accepts")) from None
    except MemoryError:
        raise ValueError("there is not enough memory to decode it") from None
    except pillow.UnidentifiedImageError:
        raise ValueError(f"it is none of {', '.join(FORMATS)}") from None
    except Exception as error:  # a damaged file may raise almost anything
        raise ValueError(visible(str(error)) or type(error).__name__) from None


def pixels_of(image: Any, frame: Frame) -> NDArray[np.uint8]:
    """An opened image (h, w, 3) as `frame` keeps it."""
    fitted, side = (_square, frame.size) if frame.keep is None else (_whole, frame.keep)
    image.draft(None, (side, side))  # a JPEG is decoded at a fraction of its size
    _check_size(*image.size)
    with _room.taken(pixels := image.width * image.height):
        if pixels > LARGE:
            _give_memory_back()
        return fitted(image, side)


class _Room:
    """What bounds the memory of all threads together: so many pixels are decoded at a time, or a larger image alone."""

    def __init__(self, pixels: int) -> None:
        self.pixels, self.used = pixels, 0
        self.changed = threading.Condition()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        with self.changed:
            self.changed.wait_for(lambda: not self.used or self.used + pixels <= self.pixels)
            self.used += pixels
        try:
            yield
        finally:
            with self.changed:
                self.used -= pixels
                self.changed.notify_all()


_room = _Room(MAX_PIXELS)


def _give_memory_back() -> None:
    """Ask the C library for what earlier images left: it keeps freed memory for each thread that reads images."""
    with suppress(OSError, AttributeError):  # another system, another library
        ctypes.CDLL(None).malloc_trim(0)


def _check_size(width: int, height: int) -> None:
    if min(width, height) < 1:
        raise ValueError(f"it has {width} × {height} pixels")
    if width * height > MAX_PIXELS:
        raise ValueError(_too_large(f"{width:,} × {height:,}"))


def _too_large(pixels: str) -> str:
    return f"it declares {pixels} pixels; at most {MAX_PIXELS:,} are read: make it smaller"


def _square(image: Any, size: int) -> NDArray[np.uint8]:
    """The middle square in colour."""
    pillow = import_pillow()
    coloured = _loaded(image)
    if coloured.size == (size, size):
        return np.asarray(coloured)
    side = min(coloured.size)
    left, top = (coloured.width - side) // 2, (coloured.height - side) // 2
    box = (left, top, left + side, top + side)
    pixels: NDArray[np.uint8] = np.asarray(coloured.resize((size, size), pillow.Resampling.BILINEAR, box))
    return pixels


def _whole(image: Any, short: int) -> NDArray[np.uint8]:
    """All of it in colour, scaled down where its short side is longer than `short`."""
    coloured = _loaded(image)
    if (side := min(coloured.size)) > short:
        width, height = (short * length // side for length in coloured.size)
        if (scaled := scaled_down(coloured, width, height)) is not None:
            return scaled
        coloured = coloured.resize((width, height), import_pillow().Resampling.BILINEAR)
    pixels: NDArray[np.uint8] = np.asarray(coloured)
    return pixels


def _loaded(image: Any) -> Any:
    """Upright, in colour."""
    image.load()
    return _in_colour(_upright(_on_usual_scale(image), image))


def _on_usual_scale(image: Any) -> Any:
    """The same image with pixels of one byte each, 255 for white."""
    # some versions of Pillow give the 16 bits of PNG and PPM as "I"
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        scaled = _from_16_bits(np.asarray(image))
    elif image.mode == "I":
        raise ValueError("its pixels are whole numbers without an agreed white; save it with 8 or 16 bits")
    elif image.mode == "F":
        scaled = _from_floats(np.asarray(image))
    else:
        return image
    if getattr(image, "tag_v2", {}).get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
        scaled = 255 - scaled
    made = import_pillow().fromarray(scaled)
    level = image.info.get("transparency")
    if isinstance(level, int):  # one grey level, of 16 bits, stands for nothing at all
        made.putalpha(import_pillow().fromarray(np.where(np.asarray(image) == level, 0, 255).astype(np.uint8)))
    return made


def _from_16_bits(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    low, high = int(pixels.min()), int(pixels.max())
    if low < 0 or high > 65535:
        raise ValueError(f"its pixels reach from {low} to {high}, expected 0 to 65535")
    return _by_strips(pixels, lambda part: (part.astype(np.int32) + 128) // 257)


def _from_floats(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    low, high = float(pixels.min()), float(pixels.max())
    if not 0 <= low <= high <= 1:  # false for NaN too
        raise ValueError(f"its floating-point pixels reach from {low:g} to {high:g}; expected 0 for black, 1 for white")
    return _by_strips(pixels, lambda part: np.rint(part * 255))


def _by_strips(pixels: NDArray[Any], scaled: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[np.uint8]:
    """`scaled` of all pixels (h, w), some rows at a time."""
    out = np.empty(pixels.shape, np.uint8)
    for rows in _strips(*pixels.shape):
        out[rows] = scaled(pixels[rows])
    return out


def _strips(height: int, width: int) -> Iterator[slice]:
    step = max(1, STRIP // width)
    return (slice(top, min(top + step, height)) for top in range(0, height, step))


def _upright(image: Any, noted: Any) -> Any:
    """Turned and mirrored as the camera says; `noted` is what has its notes."""
    way = TURNS.get(_orientation(noted))
    return image.transpose(getattr(import_pillow().Transpose, way)) if way else image


def _orientation(noted: Any) -> Any:
    try:
        return noted.getexif().get(ORIENTATION)
    except Exception:  # notes that cannot be read turn nothing, here as in any viewer
        return None


def _in_colour(image: Any) -> Any:
    """Three channels; white where it is transparent."""
    if "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        return _on_white(image)
    return image if image.mode == "RGB" else image.convert("RGB")  # which would copy it


def _on_white(image: Any) -> Any:
    pillow = import_pillow()
    made = pillow.new("RGB", image.size)
    for rows in _strips(image.height, image.width):
        seen = image.crop((0, rows.start, image.width, rows.stop)).convert("RGBA")
        page = pillow.new("RGBA", seen.size, (255, 255, 255, 255))
        made.paste(pillow.alpha_composite(page, seen).convert("RGB"), (0, rows.start))
    return made


def import_pillow() -> Any:
    require("reading image files", "PIL")
    from PIL import Image

    return Image
