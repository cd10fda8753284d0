"""The kernel that scales photographs down, against Pillow, whose pixels it must give to the bit."""

import threading

import numpy as np
import pytest

from equipoise.data import decode
from equipoise.data.frame import Frame
from equipoise.native import scaling

Image = pytest.importorskip("PIL.Image")
RGB = Image.new("RGB", (8, 8))
needs_kernel = pytest.mark.skipif(
    scaling.scaled_down(RGB, 4, 4) is None, reason="no kernel, or a Pillow that does not show its memory"
)


def photo(height, width, rng, hard=False):
    pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray((pixels > 127).astype(np.uint8) * 255 if hard else pixels)


@needs_kernel
def test_pixels_are_pillows_to_the_bit():
    rng = np.random.default_rng(0)
    for trial in range(300):
        width = int(rng.integers(1, 150))
        height = int(rng.integers(1, min(150, 2 * width) + 1))
        image, side = photo(height, width, rng, hard=trial % 3 == 0), min(height, width)
        short = int(rng.integers(1, side + 1))
        size = short * width // side, short * height // side
        expected = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
        np.testing.assert_array_equal(scaling.scaled_down(image, *size), expected, f"{image.size} to {size}")


@needs_kernel
def test_what_pillow_must_do():
    assert scaling.scaled_down(RGB.convert("L"), 4, 4) is None
    assert scaling.scaled_down(Image.new("RGB", (8, 17)), 4, 8) is None, "Pillow 13 begins with its columns"
    assert scaling.scaled_down(Image.new("RGB", (2200, 2200)), 4, 4) is None, "it lies in several pieces"
    assert scaling.scaled_down(Image.new("RGB", (8, 16)), 4, 8) is not None


@needs_kernel
def test_files_have_the_same_pixels_without_the_kernel(tmp_path, monkeypatch):
    rng, frame = np.random.default_rng(1), Frame(16, 20)
    for name, size in (("wide.jpg", (60, 97)), ("high.png", (90, 41)), ("small.png", (12, 30))):
        photo(*size, rng).save(tmp_path / name)
    ours = {path: decode.read_image(path, frame) for path in tmp_path.iterdir()}
    monkeypatch.setattr(decode, "scaled_down", lambda *given: None)
    for path, pixels in ours.items():
        np.testing.assert_array_equal(pixels, decode.read_image(path, frame), path.name)


def test_threads_together_decode_no_more_pixels_than_there_is_room_for():
    room, sizes, most = decode._Room(10), [4, 4, 3, 10, 25, 1, 9, 4] * 4, []

    def use(size):
        with room.taken(size):
            most.append((room.used, size))

    threads = [threading.Thread(target=use, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(most) == len(sizes) and room.used == 0
    assert all(used <= 10 or size == 25 for used, size in most)


def test_room_is_given_back_by_an_image_that_fails():
    room = decode._Room(10)
    with pytest.raises(OSError, match="truncated"), room.taken(7):
        raise OSError("truncated")
    assert room.used == 0
