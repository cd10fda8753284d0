"""Images in their own shapes: views and boxes against a slow float64 loop and Pillow; files, processes, devices."""

import math
import pickle

import numpy as np
import pytest
import torch

from equipoise.core import Spec
from equipoise.data import (
    DataError,
    Frame,
    ImageFiles,
    Ragged,
    ResizedCrop,
    boxes,
    cache,
    load_task,
    parallel,
    placeless,
    write_arena,
)
from equipoise.data.arena import Arena
from equipoise.data.augment.crops import Crops, augmented, crops_of
from equipoise.data.task import Split, at_hand
from equipoise.native import boxes as native

FRAME = Frame(8, resize=10, keep=12)
SHAPES = [(12, 12), (12, 17), (31, 12), (1, 9), (9, 1), (1, 1), (2, 60), (5, 3), (12, 90)]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def photos(shapes=SHAPES, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in shapes]


@pytest.fixture(params=["compiled", "PyTorch"])
def way(request, monkeypatch):
    """Both ways of reading boxes."""
    if request.param == "PyTorch":
        monkeypatch.setattr(native, "suits", lambda arena: False)
    elif native._kernel() is None:
        pytest.skip("the kernels were not compiled")


# -- the slow reference ----------------------------------------------------------------------------------------------


def kernel(t, mode):
    t, a = np.abs(t), -0.75
    if mode == "bilinear":
        return np.maximum(0.0, 1 - t)
    near, far = (a + 2) * t**3 - (a + 3) * t**2 + 1, a * (t**3 - 5 * t**2 + 8 * t - 4)
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def matrix(length, scaled, mode):
    """(scaled, length): an output's weights of all pixels of a line; the kernel is stretched to scale down."""
    step, i, p = length / scaled, np.arange(scaled)[:, None], np.arange(length)
    weights = kernel((p + 0.5 - (i + 0.5) * step) / max(step, 1.0), mode)
    return weights / weights.sum(1, keepdims=True)


def slow_resize(image, height, width, mode="bilinear"):
    """An array (h, w, 3) scaled, (height, width, 3)."""
    down, across = matrix(image.shape[0], height, mode), matrix(image.shape[1], width, mode)
    return np.einsum("ip,jq,pqc->ijc", down, across, image.astype(np.float64), optimize=True)


def slow_view(image, size, resize):
    h, w = image.shape[:2]
    height, width = (resize, resize * w // h) if h <= w else (resize * h // w, resize)
    top, left = (height - size) // 2, (width - size) // 2
    return slow_resize(image, height, width)[top : top + size, left : left + size]


def close(result, slow):
    """To rounding: that of the output, and the little that weights in multiples of 2⁻¹⁴ add."""
    assert result.dtype == torch.uint8 and np.isfinite(slow).all()
    return np.abs(result.permute(0, 2, 3, 1).numpy() - np.clip(slow, 0, 255)).max() < 0.56


# -- test views ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [FRAME, Frame(8, keep=12), Frame(8, resize=30, keep=40), Frame(3, resize=4)], ids=str)
def test_views_like_the_slow_loop(frame, way):
    images = photos()
    result = Ragged.of(images, frame)[:]
    assert result.shape == (len(images), 3, frame.size, frame.size) and result.is_contiguous()
    assert close(result, np.stack([slow_view(image, frame.size, frame.resize) for image in images]))


@pytest.mark.parametrize("shape", [(60, 80), (80, 60), (200, 50), (64, 64), (40, 300)])
def test_views_like_pillow(shape, way):
    image_module = pytest.importorskip("PIL.Image")
    y, x = np.mgrid[: shape[0], : shape[1]]
    image = np.stack([127 + 120 * np.sin(x / 7), 127 + 120 * np.cos(y / 9 + x / 30), (x * y) % 256], 2).astype(np.uint8)
    frame = Frame(28, resize=32, keep=300)
    h, w = shape
    width, height = (32 * w // h, 32) if h <= w else (32, 32 * h // w)
    small = np.asarray(image_module.fromarray(image).resize((width, height), image_module.Resampling.BILINEAR))
    top, left = (height - 28) // 2, (width - 28) // 2
    expected = small[top : top + 28, left : left + 28].astype(int)
    result = Ragged.of([image], frame)[:][0].permute(1, 2, 0).numpy()
    assert np.abs(result - expected).max() <= 2


def test_where_the_short_side_is_kept_a_view_is_a_cut():
    image = photos([(12, 20)])[0]
    assert np.array_equal(Ragged.of([image], Frame(8, resize=12))[:][0].permute(1, 2, 0), image[2:10, 6:14])


# -- boxes -----------------------------------------------------------------------------------------------------------


def random_boxes(shapes, rng):
    rows = []
    for h, w in shapes:
        height, width = rng.integers(1, h + 1), rng.integers(1, w + 1)
        rows.append([rng.integers(0, h - height + 1), rng.integers(0, w - width + 1), height, width, rng.integers(2)])
    return torch.tensor(np.array(rows), dtype=torch.float32)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(8, 8), (5, 11), (3, 2)], ids=str)
def test_boxes_like_the_slow_loop(mode, size, way):
    images, rng = photos(), np.random.default_rng(3)
    ragged = Ragged.of(images, FRAME)
    for _ in range(2):
        where, index = random_boxes(SHAPES, rng), torch.randperm(len(images), generator=seeded(1))
        result = ragged.cut(index, where[index], size, mode, (31, 90))
        slow = []
        for i in index.tolist():
            top, left, height, width, mirrored = where[i].int().tolist()
            box = slow_resize(images[i][top : top + height, left : left + width], *size, mode)
            slow.append(box[:, ::-1] if mirrored else box)
        assert close(result, np.stack(slow))


def test_compiled_and_pytorch_agree_to_the_bit(monkeypatch):
    if native._kernel() is None:
        pytest.skip("the kernels were not compiled")
    shapes = [(40, 51), (70, 33), (3, 90), (16, 16)] * 4
    ragged, index = Ragged.of(photos(shapes), Frame(24, keep=70)), torch.arange(16)
    where = random_boxes(shapes, np.random.default_rng(0))
    for mode in ("bilinear", "bicubic"):
        compiled = ragged[:], ragged.cut(index, where, (20, 24), mode, (70, 90))
        with monkeypatch.context() as patch:
            patch.setattr(native, "suits", lambda arena: False)
            plain = ragged[:], ragged.cut(index, where, (20, 24), mode, (70, 90))
        assert all(torch.equal(a, b) for a, b in zip(compiled, plain, strict=True))


def test_a_bound_on_boxes_changes_no_number():
    ragged, where = Ragged.of(photos(), FRAME), random_boxes(SHAPES, np.random.default_rng(5))
    tight, loose = (ragged.cut(torch.arange(9), where, (8, 8), "bilinear", most) for most in ((31, 90), (60, 180)))
    assert torch.equal(tight, loose)


def test_one_image_and_none():
    ragged = Ragged.of(photos(), FRAME)
    one = ragged[torch.tensor([3])]
    assert one.shape == (1, 3, 8, 8) and torch.equal(one[0], ragged[:][3])
    none = ragged.take(torch.empty(0, dtype=torch.int64))
    assert len(none) == none.numel() == 0 and none[:].shape == (0, 3, 8, 8) and list(none.split(4)) == []
    assert Split(none, torch.empty(0)).dense().images.shape == (0, 3, 8, 8)


def test_constant_images_stay_constant(way):
    for level in (0, 127, 255):
        images = [np.full((h, w, 3), level, np.uint8) for h, w in SHAPES]
        ragged = Ragged.of(images, FRAME)
        where = random_boxes(SHAPES, np.random.default_rng(level))
        for mode in ("bilinear", "bicubic"):
            assert (ragged.cut(torch.arange(9), where, (7, 9), mode, (31, 90)) == level).all()
        assert (ragged[:] == level).all()


# -- crops of the whole image ----------------------------------------------------------------------------------------


def slow_draw(h, w, crop, shares, shapes, down, right):
    """One try after the other; the first box that fits, at a random place, else the largest in the middle."""
    (least, most), (low, high) = crop.area, crop.aspect
    for share, shape in zip(shares, shapes, strict=True):
        pixels = h * w * (least + (most - least) * share)
        ratio = math.exp(math.log(low) * (1 - shape) + math.log(high) * shape)
        height, width = round(math.sqrt(pixels / ratio)), round(math.sqrt(pixels * ratio))
        if 0 < height <= h and 0 < width <= w:
            return [int(down * (h - height + 1)), int(right * (w - width + 1)), height, width]
    height, width = max(1, min(h, round(w / low))), max(1, min(w, round(h * high)))
    return [(h - height) // 2, (w - width) // 2, height, width]


def test_boxes_are_drawn_from_the_whole_image():
    shapes = [(12, 12), (12, 30), (40, 12), (1, 9), (12, 400)] * 40
    crops = Crops(Ragged.of(photos(shapes), FRAME), ResizedCrop())
    drawn = crops.draw(torch.arange(len(shapes)), seeded(4))
    generator = seeded(4)
    shares, ratios = torch.rand(2, 10, 200, 1, generator=generator).double().numpy()
    down, right = torch.rand(2, 200, 1, generator=generator).double().numpy()
    expected = [
        slow_draw(*shape, crops.crop, shares[:, i, 0], ratios[:, i, 0], down[i, 0], right[i, 0])
        for i, shape in enumerate(shapes)
    ]
    assert drawn[:, :4].tolist() == expected
    assert set(drawn[:, 4].tolist()) == {0.0, 1.0}
    height, width = crops.images.largest_box(crops.crop.aspect)
    assert drawn[:, 2].max() <= height <= 40 and drawn[:, 3].max() <= width <= 30


def test_an_augmentation_without_a_crop_acts_on_the_view():
    ragged, index = Ragged.of(photos(), FRAME), torch.arange(9)
    for text in ("none", "crop_flip", "rotation", "autoaugment"):
        augment = built(text)
        assert crops_of(ragged, augment) is None
        assert torch.equal(augmented(augment, ragged, index, seeded()), augment(ragged[index], seeded()))


def test_an_augmentation_that_begins_with_a_crop_acts_on_the_whole():
    ragged, index = Ragged.of(photos(), FRAME), torch.arange(9)
    augment, generator = built("autoaugment(policy='imagenet', pad=0, area=(0.1, 1.0))"), seeded()
    crops = crops_of(ragged, augment)
    cut = crops(index, crops.draw(index, generator))
    assert torch.equal(augmented(augment, ragged, index, seeded()), augment.after_crop(cut, generator))
    sized = built("resized_crop(size=(5, 7))")
    assert augmented(sized, ragged, index, seeded()).shape == (9, 3, 5, 7)
    assert crops_of(torch.zeros(2, 3, 8, 8), sized) is None, "squares are augmented as they always were"


def built(text):
    return Spec.parse(text).build("augment")


# -- as images of a task ---------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for name, level in (("cat", 40), ("dog", 200)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(8):
            pixels = rng.integers(level, level + 50, (int(rng.integers(9, 60)), int(rng.integers(9, 60)), 3))
            image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / name / f"{i}.png")
    return f"folder(path={str(tmp_path / 'photos')!r}, size=8, resize=10, keep=16)"


def test_a_folder_keeps_images_whole(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)
    task, mapped = load_task(folder), load_task(folder, cache=tmp_path / "c")
    assert isinstance(task.train.images, Ragged) and mapped.train.images.arena.mapped
    assert task.train.images.frame == mapped.train.images.frame == Frame(8, 10, 16)
    for a, b in ((task.train, mapped.train), (task.valid, mapped.valid), (task.test, mapped.test)):
        assert torch.equal(a.labels, b.labels) and torch.equal(a.dense().images, b.dense().images)
        assert a.images.shape == (len(a), 3, 8, 8) and a.images.numel() == b.images.numel()
    views = task.train.dense().images.double() / 255
    mean, std = task.mean_std
    np.testing.assert_allclose(mean, views.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(std, views.transpose(0, 1).flatten(1).std(1), rtol=1e-5)
    left = load_task(folder, decode=False).train.images
    assert isinstance(left, ImageFiles) and torch.equal(left[torch.tensor([2, 0])], task.train.images[[2, 0]])


def test_files_are_scaled_down_to_the_short_side_that_is_kept_and_never_up(tmp_path):
    image = pytest.importorskip("PIL.Image")
    sides = [(40, 30), (30, 40), (7, 90), (16, 16), (200, 16)]
    for i, (h, w) in enumerate(sides):
        image.fromarray(np.full((h, w, 3), 7 * i, np.uint8)).save(tmp_path / f"{i}.png")
    ragged = ImageFiles(sorted(tmp_path.glob("*.png")), Frame(8, keep=16)).in_memory()
    assert ragged.table[:, 1:].tolist() == [[21, 16], [16, 21], [7, 90], [16, 16], [200, 16]]
    assert ragged[:].float().mean((1, 2, 3)).tolist() == [0, 7, 14, 21, 28]


@pytest.fixture(params=["processes", "threads"])
def decoders(request, monkeypatch):
    many = 1 if request.param == "processes" else 100
    monkeypatch.setattr(parallel, "MANY", dict.fromkeys(parallel.MANY, many))
    monkeypatch.setattr(parallel, "FEW_CORES", 1)
    monkeypatch.setattr(write_arena, "PART", 4)


def test_files_are_decoded_into_an_arena(decoders, folder, tmp_path):
    files = ImageFiles(sorted((tmp_path / "photos").rglob("*.png")), Frame(8, 10, 16))
    table = write_arena.write_arena(tmp_path / "pixels", files)
    written = Ragged(Arena(tmp_path / "pixels"), table, files.frame)
    assert torch.equal(written[:], files[:]) and len(written.arena.pixels) == written.numel() // 3


def test_all_files_that_cannot_be_decoded_are_named(decoders, folder, tmp_path):
    paths = sorted((tmp_path / "photos").rglob("*.png"))
    for path in (paths[5], paths[11]):
        path.write_bytes(b"no image")
    with pytest.raises(DataError, match="2 files cannot be read"):
        write_arena.write_arena(tmp_path / "pixels", ImageFiles(paths, FRAME))


def test_without_resize_and_keep_images_are_squares_and_names_are_what_they_were(folder):
    plain = folder.replace(", resize=10, keep=16", "")
    squares, whole = load_task(plain), load_task(folder)
    assert isinstance(squares.train.images, torch.Tensor) and squares.content == whole.content
    assert squares.fingerprint != whole.fingerprint
    assert placeless(str(Spec.parse(plain).resolved("task"))) == "folder(size=8)"
    assert placeless(folder) == "folder(size=8, resize=10, keep=16)"


def test_memory_is_shared_and_counted_once(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)
    a, b = (load_task(folder, cache=tmp_path / "c", seed=seed) for seed in (0, 1))
    cpu = torch.device("cpu")
    whole = sum(part.images.arena.pixels.numel() for part in (a.train, a.test))
    assert a.train.images.arena is a.valid.images.arena is b.train.images.arena
    assert a.bytes_to(cpu) == whole
    held = a.in_memory()
    assert b.bytes_to(cpu) == 0 and b.in_memory().train.images.arena is held.train.images.arena
    assert not held.train.images.arena.mapped and torch.equal(held.train.dense().images, a.train.dense().images)
    del held
    assert b.bytes_to(cpu) == whole, "a copy that nobody reads is let go"


def test_a_mapped_arena_goes_to_another_process_as_its_path(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)
    images = load_task(folder, cache=tmp_path / "c").train.images
    message = pickle.dumps(images)
    assert len(message) < 3000
    assert torch.equal(pickle.loads(message)[:], images[:])
    assert torch.equal(pickle.loads(pickle.dumps(images.in_memory()))[:], images[:])


def test_at_hand():
    cpu, ragged = torch.device("cpu"), Ragged.of(photos(), FRAME)
    assert at_hand(ragged, cpu) and not at_hand(ragged, torch.device("meta"))
    assert ragged.to("cpu").arena is ragged.arena


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((8, 7, None), "size ≤ resize ≤ keep"), ((8, None, 7), "size ≤ resize ≤ keep"), ((8, 12, 10), "size ≤ resize"),
        ((0, None, None), "size"), ((8, 9.5, None), "resize"), ((8, None, "x"), "keep"), ((8, 0, 9), "resize"),
    ],
)  # fmt: skip
def test_bad_sizes(sizes, message):
    with pytest.raises(ValueError, match=message):
        Frame(*sizes)


def test_weights_fit_their_bits():
    """Sums along rows fit 16 bits and totals 32, whatever the box: overshoot is the largest where weights alternate."""
    shapes = [(h, w) for h in (1, 2, 3, 5, 9) for w in (1, 2, 3, 5, 9)]
    board = [((np.indices((h, w)).sum(0) % 2) * 255).astype(np.uint8)[..., None].repeat(3, 2) for h, w in shapes]
    ragged = Ragged.of(board, Frame(4, keep=9))
    where = torch.tensor([[0, 0, h, w, 0] for h, w in shapes], dtype=torch.float32)
    for size in (1, 2, 3, 4, 7, 12, 19):
        result = ragged.cut(torch.arange(25), where, (size, size), "bicubic", (9, 9))
        assert close(result, np.stack([slow_resize(image, size, size, "bicubic") for image in board]))
    most = 1.375  # the sum of the absolute weights of a cubic with a = -3/4, half-way between two pixels
    assert 255 * most * 2**boxes.ROW_BITS < 2**15


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_same_on_a_gpu_to_the_bit():
    here = Ragged.of(photos(), FRAME)
    there, where = here.to("cuda"), random_boxes(SHAPES, np.random.default_rng(0))
    assert at_hand(there, torch.device("cuda")) and torch.equal(there[:].cpu(), here[:])
    for mode in ("bilinear", "bicubic"):
        cut = [
            ragged.cut(torch.arange(9).to(ragged.device), where.to(ragged.device), (8, 8), mode, (31, 90)).cpu()
            for ragged in (here, there)
        ]
        assert torch.equal(*cut)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_nothing_waits_for_a_gpu():
    ragged = Ragged.of(photos(), FRAME).to("cuda")
    crops, index = Crops(ragged, ResizedCrop()), torch.arange(9, device="cuda")
    generator = torch.Generator("cuda").manual_seed(0)
    crops(index, crops.draw(index, generator))
    torch.cuda.set_sync_debug_mode("error")
    try:
        crops(index, crops.draw(index, generator))
        ragged[index]
        list(ragged.split(4))
    finally:
        torch.cuda.set_sync_debug_mode("default")
