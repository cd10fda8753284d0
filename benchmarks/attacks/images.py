"""Damaged, odd and hostile files among the images of a folder: each is read right, or refused in words.

Where the right pixels are known (another mode, 16 bits, turned by EXIF, a wrong suffix), what is read must look like
them. A flipped bit in a JPEG can only show as other pixels; there it is enough that nothing breaks.
"""

from __future__ import annotations

import io
import os
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .damage import flip_bit
from .pool import Case, Outcome

LIMIT = 30.0
SIZE = 16  # pixels that the task asks for
NEAR = 12.0  # mean distance in gray levels: JPEG's loss, not another picture
FORMATS = {"png": "PNG", "jpg": "JPEG", "bmp": "BMP", "gif": "GIF", "webp": "WEBP", "tif": "TIFF", "ppm": "PPM"}


def prepare(folder: Path) -> Case:
    import numpy as np

    from equipoise.core import EquipoiseError
    from equipoise.data import load_task

    good, folder = folder / "good.png", folder / "images"
    _picture().save(good)

    def read(path: Path) -> np.ndarray:
        """The pixels of the only training image of class a."""
        task = load_task(f"folder(path={str(path)!r}, size={SIZE})", valid=0)
        train = task.train.in_memory()
        (place,) = (train.labels == 0).nonzero().flatten().tolist()
        return train.images[place].numpy().astype(float)

    def laid_out(folder: Path) -> Path:
        for part in ("train/a", "train/b", "test/a", "test/b"):
            (folder / part).mkdir(parents=True)
            if part != "train/a":
                os.link(good, folder / part / "good.png")
        return folder / "train" / "a"

    right = {}
    for kind, picture in (("colour", _picture()), ("gray", _gray())):
        picture.save(laid_out(folder / kind) / "x.png")
        right[kind] = read(folder / kind)

    def case(rng: random.Random, folder: Path) -> Outcome:
        make = rng.choices(WAYS, [weight for _, weight in LIKELY])[0]
        known = make(laid_out(folder / "photos"), rng)
        try:
            pixels = read(folder / "photos")
        except EquipoiseError as error:
            return Outcome("ok", "refused") if str(error) else Outcome("traceback", "refused without a word")
        away = min(float(np.abs(pixels - known_one).mean()) for known_one in right.values())
        if known and away > NEAR:
            return Outcome("silent", f"{make.__name__}: {known} is read {away:.0f} gray levels away from what it shows")
        return Outcome("ok", "read right" if known else "read")

    return case


def _picture(size: tuple[int, int] = (48, 40)) -> Any:
    """Smooth colours, unlike from corner to corner, so that a turned picture is another one."""
    import numpy as np
    from PIL import Image

    x, y = np.meshgrid(np.linspace(0, 1, size[0]), np.linspace(0, 1, size[1]))
    return Image.fromarray(np.stack([200 * x + 20, 180 * y + 30, 120 * (1 - x) * y + 60], axis=2).astype(np.uint8))


def _gray() -> Any:
    return _picture().convert("L").convert("RGB")


def _saved(rng: random.Random, suffix: str | None = None) -> tuple[str, bytes]:
    suffix = suffix or rng.choice(list(FORMATS))
    buffer = io.BytesIO()
    _picture().save(buffer, FORMATS[suffix])
    return suffix, buffer.getvalue()


# each writes one file into the class's folder, and gives a name to it where what it shows is known: the usual picture


def _cut(folder: Path, rng: random.Random) -> str:
    suffix, content = _saved(rng)
    (folder / f"x.{suffix}").write_bytes(content[: rng.randrange(len(content))])
    return f"a cut {suffix}" if suffix not in ("jpg", "webp") else ""


def _flips(folder: Path, rng: random.Random) -> str:
    suffix, content = _saved(rng)
    for _ in range(rng.choice((1, 1, 3, 30))):
        content = flip_bit(content, rng)
    (folder / f"x.{suffix}").write_bytes(content)
    return ""


def _header(folder: Path, rng: random.Random) -> str:
    """Random bytes where the format says how large the image is and how it is kept."""
    suffix, content = _saved(rng)
    place = rng.randrange(min(64, len(content)))
    changed = rng.choice((rng.randbytes(4), b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\x00\x9c\x40"))
    content = content[:place] + changed + content[place + len(changed) :]
    (folder / f"x.{suffix}").write_bytes(content)
    return ""


def _declared(folder: Path, rng: random.Random) -> str:
    """A PNG that declares a size it does not have, with its checksum in order."""
    side = rng.choice((0, 1, 5_000, 12_000, 40_000, 2**31 - 1, 2**32 - 1))
    other = rng.choice((side, 1, 40))
    header = struct.pack(">IIBBBBB", side, other, rng.choice((1, 8, 16)), rng.choice((0, 2, 3, 4, 6)), 0, 0, 0)
    data = zlib.compress(bytes(rng.choice((10, 100_000))))
    (folder / "x.png").write_bytes(png(header, data))
    return ""


def _inflating(folder: Path, rng: random.Random) -> str:
    """Text in a PNG that unpacks to far more than the file is."""
    text = b"Comment\0\0" + zlib.compress(bytes(rng.choice((10**6, 10**8))), 9)
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    (folder / "x.png").write_bytes(png(header, zlib.compress(bytes(8 * 25)), (b"zTXt", text)))
    return ""


def png(header: bytes, data: bytes, *further: tuple[bytes, bytes]) -> bytes:
    chunks = [(b"IHDR", header), *further, (b"IDAT", data), (b"IEND", b"")]
    parts = (struct.pack(">I", len(c)) + name + c + struct.pack(">I", zlib.crc32(name + c)) for name, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _not_an_image(folder: Path, rng: random.Random) -> str:
    suffix = rng.choice(list(FORMATS))
    content = rng.choice(
        (
            b"",
            b"hello",
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n(canary) (w) file closefile\nshowpage\n",
            b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
            b"GIF89a",
            b"P6\n99999999 99999999\n255\n",
            b"P6\n3 3\n65535\n" + bytes(54),
            b"BM" + b"\xff" * 52,
            b"II*\0\x08\0\0\0\xff\xff" + b"\xff" * 60,
            b"RIFF\xff\xff\xff\xffWEBPVP8 \xff\xff\xff\xff",
            rng.randbytes(rng.randrange(1, 3000)),
        )
    )
    (folder / f"x.{suffix}").write_bytes(content)
    return ""


def _not_a_file(folder: Path, rng: random.Random) -> str:
    path = folder / "x.png"
    rng.choice(
        (
            lambda: os.mkfifo(path),
            lambda: path.symlink_to("/dev/zero"),
            lambda: path.symlink_to("/dev/stdin"),
            lambda: path.symlink_to("/etc/passwd"),
            lambda: path.symlink_to(path),
            lambda: path.symlink_to("nowhere.png"),
            lambda: path.mkdir(),
        )
    )()
    return ""


def _wrong_suffix(folder: Path, rng: random.Random) -> str:
    kept, content = _saved(rng)
    suffix = rng.choice(list(FORMATS))
    (folder / f"x.{suffix}").write_bytes(content)
    return f"a {kept} named .{suffix}"


def _other_mode(folder: Path, rng: random.Random) -> str:
    mode, suffix = rng.choice(
        (("RGBA", "png"), ("P", "png"), ("P", "gif"), ("CMYK", "jpg"), ("CMYK", "tif"), ("LA", "png"))
    )
    image = (_gray() if mode == "LA" else _picture()).convert(mode)
    image.save(folder / f"x.{suffix}", FORMATS[suffix])
    return f"{mode} in {suffix}"


def _turned(folder: Path, rng: random.Random) -> str:
    """Kept on its side, with the note of a camera how to turn it back."""
    from PIL import Image

    back = {
        2: "FLIP_LEFT_RIGHT",
        3: "ROTATE_180",
        4: "FLIP_TOP_BOTTOM",
        5: "TRANSPOSE",
        6: "ROTATE_90",
        8: "ROTATE_270",
    }
    note = rng.choice(list(back))
    image, exif = _picture().transpose(Image.Transpose[back[note]]), Image.Exif()
    exif[0x0112] = note
    suffix = rng.choice(("jpg", "png", "webp", "tif"))
    image.save(folder / f"x.{suffix}", FORMATS[suffix], exif=exif)
    return f"EXIF orientation {note} in {suffix}"


def _deep(folder: Path, rng: random.Random) -> str:
    """More than 8 bits: gray in 16, in 32 or in floating point; the picture must be there, not black or white."""
    import numpy as np
    from PIL import Image

    gray = np.asarray(_picture().convert("L"))
    way = rng.choice(("I;16 png", "I;16 tif", "F 255 tif", "F 1 tif", "I tif"))
    made = {
        "I;16 png": lambda: Image.fromarray(gray.astype(np.uint16) * 257),
        "I;16 tif": lambda: Image.fromarray(gray.astype(np.uint16) * 257),
        "F 255 tif": lambda: Image.fromarray(gray.astype(np.float32)),
        "F 1 tif": lambda: Image.fromarray(gray.astype(np.float32) / 255),
        "I tif": lambda: Image.fromarray(gray.astype(np.int32) * 257),
    }[way]()
    made.save(folder / f"x.{way[-3:]}")
    return f"deep {way}"


def _tall(folder: Path, rng: random.Random) -> str:
    _picture(rng.choice(((1, 1), (1, 3000), (3000, 1), (2, 2), (600, 500)))).save(folder / "x.png")
    return ""


def _frames(folder: Path, rng: random.Random) -> str:
    first = _picture()
    first.save(folder / "x.gif", save_all=True, append_images=[first.rotate(90)] * rng.randint(1, 30))
    return "the first of several frames"


LIKELY: list[tuple[Callable[[Path, random.Random], str], int]] = [
    (_cut, 4),
    (_flips, 6),
    (_header, 6),
    (_declared, 3),
    (_inflating, 1),
    (_not_an_image, 3),
    (_not_a_file, 1),
    (_wrong_suffix, 2),
    (_other_mode, 2),
    (_turned, 2),
    (_deep, 2),
    (_tall, 1),
    (_frames, 1),
]
WAYS = [way for way, _ in LIKELY]
