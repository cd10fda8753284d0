"""Every kind of pixel that files hold, against values worked out by hand."""

import io
import struct
import zlib

import numpy as np
import pytest

from equipoise.data import ImageFiles
from equipoise.data.decode import FORMATS, MAX_PIXELS, read_image
from equipoise.data.frame import Frame

Image = pytest.importorskip("PIL.Image")


def saved(image, path, **options):
    image.save(path, **options)
    return path


def read(path, size=None):
    if size is None:
        with Image.open(path) as image:
            size = min(image.size)
    return ImageFiles([path], size).in_memory()[0].permute(1, 2, 0).numpy()


def grey(path):
    """The pixels of an image whose three channels are equal."""
    pixels = read(path)
    assert (pixels == pixels[..., :1]).all()
    return pixels[..., 0].tolist()


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth, kind, rows=b"", extra=b""):
    """A PNG byte by byte: depth in bits, kind 0 grey, 2 colour, 3 palette."""
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    end = png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra + end


LEVELS, EXPECTED = [[0, 257, 128], [32768, 65535, 65278], [129, 384, 386]], [[0, 1, 0], [128, 255, 254], [1, 1, 2]]


def test_16_bit_png_written_by_hand(tmp_path):
    rows = b"".join(b"\0" + struct.pack(">3H", *row) for row in LEVELS)
    (tmp_path / "x.png").write_bytes(png(3, 3, 16, 0, rows))
    assert grey(tmp_path / "x.png") == EXPECTED


@pytest.mark.parametrize("order", ["<u2", ">u2"])
def test_16_bit_tiff_in_both_byte_orders(tmp_path, order):
    image = Image.frombytes("I;16B" if order == ">u2" else "I;16", (3, 3), np.array(LEVELS, order).tobytes())
    assert grey(saved(image, tmp_path / "x.tif")) == EXPECTED


def test_16_bit_pgm(tmp_path):
    (tmp_path / "x.pgm").write_bytes(b"P5 3 3 65535\n" + np.array(LEVELS, ">u2").tobytes())
    assert grey(tmp_path / "x.pgm") == EXPECTED


def test_12_bit_pgm_says_its_own_white(tmp_path):
    (tmp_path / "x.pgm").write_bytes(b"P5 2 2 4095\n" + np.array([[0, 4095], [2048, 4095]], ">u2").tobytes())
    assert grey(tmp_path / "x.pgm") == [[0, 255], [128, 255]]


def test_a_16_bit_negative(tmp_path):
    image = Image.frombytes("I;16", (2, 2), np.array([[0, 65535], [257, 0]], "<u2").tobytes())
    path = saved(image, tmp_path / "x.tif", tiffinfo={262: 0})
    assert grey(path) == [[255, 0], [254, 255]]


def test_16_bits_of_grey_with_a_level_that_is_transparent(tmp_path):
    rows = b"".join(b"\0" + struct.pack(">2H", *row) for row in [[0, 300], [300, 65535]])
    (tmp_path / "x.png").write_bytes(png(2, 2, 16, 0, rows, png_chunk(b"tRNS", struct.pack(">H", 300))))
    assert grey(tmp_path / "x.png") == [[0, 255], [255, 255]]


def test_16_bit_colour_png(tmp_path):
    rows = b"".join(b"\0" + struct.pack(">6H", 0, 65535, 256 * 100, 65535, 0, 256 * 7) for _ in range(2))
    (tmp_path / "x.png").write_bytes(png(2, 2, 16, 2, rows))
    assert read(tmp_path / "x.png").tolist() == [[[0, 255, 100], [255, 0, 7]]] * 2


def test_floats_count_from_0_to_1(tmp_path):
    image = Image.fromarray(np.array([[0, 1], [0.5, 0.2]], np.float32))
    assert grey(saved(image, tmp_path / "x.tif")) == [[0, 255], [128, 51]]


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.array([[0, 255.0]] * 2, np.float32), "reach from 0 to 255; expected 0 for black, 1 for white"),
        (np.array([[-0.1, 1]] * 2, np.float32), "reach from -0.1 to 1"),
        (np.array([[np.nan, 1]] * 2, np.float32), "reach from nan"),
        (np.array([[0, 70000]] * 2, np.int32), "without an agreed white; save it with 8 or 16 bits"),
    ],
)
def test_a_scale_nobody_agreed_on_is_refused(tmp_path, pixels, message):
    with pytest.raises(ValueError, match=message):
        read(saved(Image.fromarray(pixels), tmp_path / "x.tif"))


# Red, green / blue, white, in an image twice as large so that JPEG keeps the colours.
CORNERS = np.array([[[250, 5, 5], [5, 250, 5]], [[5, 5, 250], [250, 250, 250]]], np.uint8).repeat(16, 0).repeat(16, 1)
# EXIF's orientation -> how an upright array is stored: the inverse of what a viewer does
STORED = {
    1: lambda x: x,
    2: lambda x: x[:, ::-1],
    3: lambda x: x[::-1, ::-1],
    4: lambda x: x[::-1],
    5: lambda x: x.swapaxes(0, 1),
    6: lambda x: np.rot90(x, 1),  # a viewer turns it a quarter clockwise
    7: lambda x: x[::-1, ::-1].swapaxes(0, 1),
    8: lambda x: np.rot90(x, -1),
}


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "tif"])
@pytest.mark.parametrize("orientation", STORED)
def test_exif_orientation(tmp_path, orientation, suffix):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(np.ascontiguousarray(STORED[orientation](CORNERS)))
    path = saved(image, tmp_path / f"x.{suffix}", exif=exif, **({"quality": 95} if suffix != "tif" else {}))
    found = read(path, 32)[8::16, 8::16].astype(int)
    assert np.abs(found - CORNERS[8::16, 8::16]).max() < 12


def test_16_bits_are_turned_too(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    stored = np.rot90(np.array([[0, 65535], [257, 514]], "<u2"), 1)
    image = Image.frombytes("I;16", (2, 2), np.ascontiguousarray(stored).tobytes())
    assert grey(saved(image, tmp_path / "x.png", exif=exif)) == [[0, 255], [1, 2]]


def test_notes_of_a_camera_that_are_nonsense_turn_nothing(tmp_path):
    image = Image.fromarray(CORNERS)
    for name, exif in (("a", b"Exif\0\0nonsense"), ("b", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff")):
        path = saved(image, tmp_path / f"{name}.jpg", exif=exif, quality=95)
        assert np.abs(read(path, 32)[8::16, 8::16].astype(int) - CORNERS[8::16, 8::16]).max() < 12


@pytest.mark.parametrize("suffix", ["jpg", "tif"])
def test_cmyk(tmp_path, suffix):
    ink = np.zeros((16, 16, 4), np.uint8)
    ink[..., 1:3] = 255  # magenta and yellow: red
    path = saved(Image.frombytes("CMYK", (16, 16), ink.tobytes()), tmp_path / f"x.{suffix}")
    assert np.abs(read(path)[8, 8].astype(int) - [255, 0, 0]).max() < 12


def test_what_is_transparent_shows_white(tmp_path):
    pixels = np.array([[[10, 20, 30, 255], [0, 0, 0, 0]], [[200, 0, 0, 51], [0, 0, 0, 128]]], np.uint8)
    expected = [[[10, 20, 30], [255, 255, 255]], [[244, 204, 204], [127, 127, 127]]]
    for suffix in ("png", "tif"):
        assert read(saved(Image.fromarray(pixels), tmp_path / f"x.{suffix}")).tolist() == expected
    grey_alpha = np.array([[[0, 255], [0, 0]], [[100, 255], [0, 51]]], np.uint8)
    assert grey(saved(Image.fromarray(grey_alpha, "LA"), tmp_path / "y.png")) == [[0, 255], [100, 204]]


def test_palettes(tmp_path):
    image = Image.frombytes("P", (2, 2), bytes([0, 1, 2, 0]))
    image.putpalette([10, 20, 30, 40, 50, 60, 0, 0, 0])
    assert read(saved(image, tmp_path / "x.png")).tolist() == [
        [[10, 20, 30], [40, 50, 60]],
        [[0, 0, 0], [10, 20, 30]],
    ]
    for name, options in (("y.png", {"transparency": 1}), ("y.gif", {"transparency": 1})):
        found = read(saved(image, tmp_path / name, **options)).tolist()
        assert found == [[[10, 20, 30], [255, 255, 255]], [[0, 0, 0], [10, 20, 30]]]
    path = saved(image, tmp_path / "z.png", transparency=bytes([255, 0, 51]))
    assert read(path).tolist() == [[[10, 20, 30], [255, 255, 255]], [[204, 204, 204], [10, 20, 30]]]


@pytest.mark.parametrize("suffix", ["png", "tif", "bmp"])
def test_one_bit(tmp_path, suffix):
    image = Image.fromarray(np.array([[0, 255], [255, 0]], np.uint8)).convert("1", dither=0)
    assert grey(saved(image, tmp_path / f"x.{suffix}")) == [[0, 255], [255, 0]]


@pytest.mark.parametrize("suffix", ["gif", "png", "webp", "tif"])
def test_the_first_of_several_frames(tmp_path, suffix):
    frames = [Image.new("RGB", (8, 8), (value,) * 3) for value in (0, 255)]
    path = saved(frames[0], tmp_path / f"x.{suffix}", save_all=True, append_images=frames[1:])
    with Image.open(path) as image:
        assert image.n_frames == 2
    assert read(path).max() < 5


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_read_at_a_fraction_of_its_size(tmp_path, progressive):
    smooth = np.add.outer(np.arange(256), np.arange(256)) // 2
    image = Image.fromarray(smooth.astype(np.uint8))
    path = saved(image, tmp_path / "x.jpg", quality=95, progressive=progressive)
    exact = smooth.reshape(16, 16, 16, 16).mean((1, 3))
    assert np.abs(read(path, 16)[..., 0] - exact)[1:-1, 1:-1].max() < 3


# What is not read at all


def test_only_formats_of_the_list(tmp_path, monkeypatch):
    """PostScript under another name must not reach the program that runs it."""
    opened = []
    monkeypatch.setattr(Image, "open", lambda *a, formats=None, **k: opened.append(formats) or _raise(OSError("no")))
    (tmp_path / "x.jpg").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    with pytest.raises(ValueError):
        read_image(tmp_path / "x.jpg", Frame(4))
    assert opened == [FORMATS]
    monkeypatch.undo()
    with pytest.raises(ValueError, match="it is none of PNG, JPEG, BMP"):
        read_image(tmp_path / "x.jpg", Frame(4))


def _raise(error):
    raise error


@pytest.mark.parametrize(
    ("width", "height"), [(40_000, 40_000), (12_000, 12_000), (2**31 - 1, 1), (2**31 - 1, 2**31 - 1)]
)
def test_a_size_that_is_only_declared(tmp_path, width, height):
    (tmp_path / "x.png").write_bytes(png(width, height, 8, 2))
    with pytest.raises(ValueError, match="it declares .* pixels; at most 134,217,728 are read"):
        read(tmp_path / "x.png", 4)
    assert width * height > MAX_PIXELS


def test_a_file_that_ends_early(tmp_path):
    buffer = io.BytesIO()
    Image.fromarray(CORNERS).save(buffer, "PNG")
    (tmp_path / "x.png").write_bytes(buffer.getvalue()[:-40])
    with pytest.raises(ValueError, match="x.png cannot be read as an image"):
        read(tmp_path / "x.png", 4)


def test_other_content_than_was_said(tmp_path):
    path = saved(Image.fromarray(CORNERS), tmp_path / "x.png")
    with pytest.raises(ValueError, match="changed since the folder was looked through"):
        read_image(path, Frame(4), bytes(32))
