"""Damaged image files by the hundred: each is read or refused with words; none hangs, none eats the memory."""

import io
import random
import resource
import struct
import time

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.data import load_task

Image = pytest.importorskip("PIL.Image")
COUNT = 200
SECONDS = 60
MEMORY = 2**30  # bytes; a declared size of gigabytes must not be believed


def originals():
    """A file of every kind that is read, as bytes."""
    rng = np.random.default_rng(0)
    colour = Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8))
    for suffix, options in (
        ("png", {}),
        ("jpg", {}),
        ("jpg", {"progressive": True}),
        ("bmp", {}),
        ("gif", {}),
        ("webp", {}),
        ("tif", {"compression": "tiff_lzw"}),
        ("tif", {}),
        ("ppm", {}),
    ):
        buffer = io.BytesIO()
        colour.save(buffer, {"jpg": "JPEG", "tif": "TIFF"}.get(suffix, suffix), **options)
        yield suffix, buffer.getvalue()
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 65536, (24, 24)).astype(np.uint16)).save(buffer, "PNG")
    yield "png", buffer.getvalue()


def damaged(data, rng):
    """One of several ways in which files come to be what they should not be."""
    way, data = rng.randrange(6), bytearray(data)
    if way == 0:
        return data[: rng.randrange(len(data))]
    if way == 1:
        for _ in range(rng.choice((1, 3, 20))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif way == 2:  # a number of the header is as large as can be
        place = rng.randrange(4, min(len(data) - 4, 64))
        data[place : place + 4] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", struct.pack("<I", 40_000)))
    elif way == 3:
        place = rng.randrange(len(data))
        data[place:place] = rng.randbytes(rng.choice((1, 64, 4096)))
    elif way == 4:
        data[: rng.randrange(1, 32)] = rng.choice(
            (b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"")
        )
    else:
        start = rng.randrange(len(data))
        data[start : start + rng.randrange(1, 200)] = b""
    return data


def test_damaged_images_are_read_or_refused(tmp_path):
    rng, kinds = random.Random(0), list(originals())
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(2):
            (tmp_path / name / f"good{i}.png").write_bytes(kinds[0][1])
    outcomes = {"read": 0, "refused": 0}
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    for i in range(COUNT):
        suffix, data = rng.choice(kinds)
        path = tmp_path / "a" / f"damaged.{suffix}"
        path.write_bytes(damaged(data, rng))
        try:
            task = load_task(f"folder(path={str(tmp_path)!r}, size=8)", valid=0)
            outcomes["read"] += 1
            assert len(task.train) + len(task.test) == 5, i
        except EquipoiseError as error:
            outcomes["refused"] += 1
            assert path.name in str(error), i
        path.unlink()
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert time.monotonic() - began < SECONDS and grown < MEMORY
    assert min(outcomes.values()) > COUNT / 10, f"{outcomes}: either the damage or the reader does nothing"
