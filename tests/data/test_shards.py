"""Shards: exact counts, each image as its file has it, the tar files of others, and what is said of damaged ones."""

import io
import json
import os
import tarfile

import numpy as np
import pytest
import torch

from equipoise.core import EquipoiseError
from equipoise.data import ShardDataset, index_shards, load_task, read_index, write_shards
from equipoise.data.shards.index import INDEX
from equipoise.data.sources.folder import TEST_SHARE

Image = pytest.importorskip("PIL.Image")

COUNTS = {"ant": 30, "bee": 10, "cat": 5}


def photo(rng):
    """A picture of random sides, larger and smaller than what is kept."""
    return rng.integers(0, 256, (*rng.integers(12, 40, 2), 3), dtype=np.uint8)


def png(pixels):
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder of one folder per class."""
    base, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for name, count in COUNTS.items():
        (base / name).mkdir()
        for i in range(count):
            (base / name / f"{i:02}.png").write_bytes(png(photo(rng)))
    return base


@pytest.fixture(scope="module")
def written(photos, tmp_path_factory):
    """The same as shards."""
    return write_shards(photos, tmp_path_factory.mktemp("out") / "shards", shard_bytes=20_000).parent


@pytest.fixture
def copied(written, tmp_path):
    """The shards in a folder that a test may damage."""
    for path in written.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def write_tar(path, members):
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def test_the_index_counts_exactly_and_every_image_is_there_once(photos, written):
    index = read_index(written)
    assert index.class_names == tuple(COUNTS) and index.class_counts("train") == list(COUNTS.values())
    assert json.loads((written / INDEX).read_text())["class_counts"] == {"train": list(COUNTS.values())}
    assert len(index.shards) > 3, "the test should see several"
    data = ShardDataset(written)
    found = sorted((data.class_names[data.labels[i]], data.images.content(i)) for i in range(len(data)))
    expected = sorted((path.parent.name, path.read_bytes()) for path in photos.glob("*/*.png"))
    assert found == expected


def test_a_shard_is_a_mixture_of_classes_and_the_same_every_time(photos, written, tmp_path):
    again = write_shards(photos, tmp_path / "again", shard_bytes=20_000).parent
    assert all((again / path.name).read_bytes() == path.read_bytes() for path in written.iterdir())
    first = read_index(written).shards[0].labels
    assert len(np.unique(first)) > 1


def test_they_are_read_as_the_folder_is(photos, written):
    """The same pixels, whatever the frame; which images are held out depends on their order, so all are compared."""
    for frame in ("size=16", "size=12, resize=14, keep=20"):
        names = f"folder(path='{photos}', {frame})", f"shards(path='{written}', {frame})"
        tasks = [load_task(name, valid=0) for name in names]
        assert tasks[0].class_counts.tolist() == tasks[1].class_counts.tolist()
        views = [torch.cat([task.train.images[:], task.test.images[:]]).flatten(1) for task in tasks]
        assert sorted(views[0].tolist()) == sorted(views[1].tolist())


def test_decoded_once_they_are_the_same_task(written):
    streamed, decoded = (load_task(f"shards(path='{written}', size=8, stream={way})") for way in (True, False))
    assert isinstance(decoded.train.images, torch.Tensor) and not isinstance(streamed.train.images, torch.Tensor)
    assert torch.equal(streamed.train.images[:], decoded.train.images)
    assert torch.equal(streamed.train.labels, decoded.train.labels)
    assert torch.allclose(streamed.mean_std[0], decoded.mean_std[0]), "fewer images than the sample has"


def test_boxes_are_cut_out_of_whole_images(written):
    """A box that is as large as its image, scaled to its own size, is that image."""
    from equipoise.data.augment import ResizedCrop, crops_of

    task = load_task(f"shards(path='{written}', size=8, resize=12, keep=100)", valid=0)
    images = task.train.images
    crops = crops_of(images, ResizedCrop())
    for row in range(4):
        index, whole = torch.tensor([row]), images.image(row)
        assert images.sides(index).tolist() == [list(whole.shape[:2])]
        box = torch.tensor([[0, 0, *whole.shape[:2], 0]])
        cut = images.cut(index, box, whole.shape[:2], "bilinear", images.largest_box((0.1, 10.0)))
        assert cut[0].permute(1, 2, 0).tolist() == whole.tolist()
    index = torch.arange(len(images))
    assert crops(index, crops.draw(index)).shape == (len(images), 3, 8, 8)


def test_parts_are_told_by_names(tmp_path):
    rng = np.random.default_rng(1)
    for name, count in {"pets-train-0.tar": 6, "pets-val-0.tar": 4, "pets-test-0.tar": 2}.items():
        samples = {f"{i}.{kind}": png(photo(rng)) if kind == "png" else b"%d" % (i % 2)
                   for i in range(count) for kind in ("png", "cls")}  # fmt: skip
        write_tar(tmp_path / name, samples)
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    index_shards(tmp_path)
    task = load_task(f"shards(path='{tmp_path}', size=8)")
    assert [len(split) for split in (task.train, task.valid, task.test)] == [6, 4, 2]
    assert task.class_names == ("cat", "dog")


def test_without_a_test_part_a_share_of_each_class_is_held_out(written):
    task = load_task(f"shards(path='{written}', size=8)", valid=0)
    held = torch.bincount(task.test.labels)
    assert held.tolist() == [round(TEST_SHARE * count) for count in COUNTS.values()]
    assert (held + task.class_counts).tolist() == list(COUNTS.values())


def test_shards_of_others_may_have_more_in_a_sample(tmp_path):
    image = png(photo(np.random.default_rng(2)))
    members = {"a/0.x.json": b"{}", "a/0.cls": b" 1\n", "a/0.PNG": image, "__meta__": b"?", "a/1.png": image,
               "a/1.cls": b"0"}  # fmt: skip
    write_tar(tmp_path / "data.tar", members)
    data = ShardDataset(index_shards(tmp_path).parent, size=8)
    assert data.labels.tolist() == [1, 0] and data.class_names == ("0", "1")
    assert data.images.content(1) == image


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"0.png": b"?"}, "sample 0 has 1 images and 0 files .cls"),
        ({"0.png": b"?", "0.jpg": b"?", "0.cls": b"0"}, "sample 0 has 2 images"),
        ({"0.png": b"?", "0.cls": b"-1"}, "no class number"),
        ({"0.png": b"?", "0.cls": b"1" * 30}, "no class number"),
        ({"0.png": b"no image", "0.cls": b"0"}, "0.png cannot be read as an image: it is none of PNG"),
        ({"readme": b"hello"}, "has no samples"),
    ],
)
def test_a_sample_that_is_none_is_refused(tmp_path, members, said):
    write_tar(tmp_path / "data.tar", members)
    with pytest.raises(EquipoiseError, match=said) as error:
        index_shards(tmp_path)
    assert "data.tar" in str(error.value)


@pytest.mark.parametrize("length", [100, 700, 2_000, 10_240 - 1_024])
def test_a_shard_that_breaks_off_gets_no_index(tmp_path, length):
    image = png(np.zeros((2, 2, 3), np.uint8))
    write_tar(tmp_path / "data.tar", {f"{i}.{kind}": image if kind == "png" else b"0" for i in range(4)
                                      for kind in ("png", "cls")})  # fmt: skip
    os.truncate(tmp_path / "data.tar", min(length, 8 * 1024))
    with pytest.raises(EquipoiseError, match=r"data.tar is no shard: expected an uncompressed tar.*copy it again"):
        index_shards(tmp_path)


def test_a_damaged_header_in_the_middle_is_noticed(copied):
    path = copied / "train-000000.tar"
    data = bytearray(path.read_bytes())
    data[data.index(b"train-000000-000003.png")] ^= 1  # its checksum is then wrong, and tarfile stops without a word
    path.write_bytes(data)
    with pytest.raises(EquipoiseError, match="train-000000.tar.*it breaks off or is damaged after"):
        index_shards(copied)


def test_only_regular_files_are_shards(tmp_path):
    os.mkfifo(tmp_path / "data.tar")
    with pytest.raises(EquipoiseError, match="data.tar is no shard.*not a regular file"):
        index_shards(tmp_path)


def test_a_shard_that_has_changed_is_refused(copied):
    data = ShardDataset(copied)
    path = copied / "train-000001.tar"
    content = bytearray(path.read_bytes())
    row = int((data.shards == 1).nonzero()[0])
    offset = int(data.images.spans[row, 0])
    content[offset + 40] ^= 255
    path.write_bytes(content)
    with pytest.raises(
        EquipoiseError, match="train-000001.tar.*has changed since the index was written, or is damaged"
    ):
        data[row]
    os.truncate(path, len(content) - 512)
    with pytest.raises(EquipoiseError, match=r"train-000001.tar has [\d,]+ bytes, and index.json says"):
        ShardDataset(copied)
    path.unlink()
    with pytest.raises(EquipoiseError, match="train-000001.tar cannot be read .No such file"):
        ShardDataset(copied)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda index: index.pop("format"), "does not say that its format"),
        (lambda index: index.pop("class_names"), "class_names of the index"),
        (lambda index: index.pop("shards"), "no list of shards"),
        (lambda index: index["shards"][0].update(name="../elsewhere.tar"), "not the name of a shard"),
        (lambda index: index["shards"][0].update(bytes=-1), "has -1 bytes"),
        (lambda index: index["shards"].append(index["shards"][0]), "names a shard twice"),
        (lambda index: index["shards"][0]["labels"].__setitem__(0, 7), "labels of .* up to 7, and there are 3"),
        (lambda index: index["shards"][0]["labels"].pop(), "labels of .* are not"),
        (lambda index: index["shards"][0]["offsets"].__setitem__(0, 10**9), "lie beyond"),
        (lambda index: index["shards"][0]["sizes"].__setitem__(0, 1.5), "sizes of .* whole numbers"),
        (lambda index: index["shards"][0].update(digests="0g"), "digests of"),
        (lambda index: index["class_counts"].update(train=[1, 2, 3]), "class_counts are not those of its labels"),
    ],
)
def test_a_damaged_index_is_refused(copied, change, said):
    path = copied / INDEX
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))
    with pytest.raises(EquipoiseError, match=rf"index.json is damaged: expected.*{said}.*write it again"):
        read_index(copied)


def test_a_missing_or_torn_index_says_what_to_do(copied):
    (copied / INDEX).write_bytes((copied / INDEX).read_bytes()[:-10])
    with pytest.raises(EquipoiseError, match="index.json is damaged"):
        load_task(f"shards(path='{copied}')")
    (copied / INDEX).unlink()
    with pytest.raises(EquipoiseError, match="has no index.json; 'equipoise shards' makes one"):
        load_task(f"shards(path='{copied}')")
    with pytest.raises(EquipoiseError, match="is not a folder; give the folder that 'equipoise shards' wrote"):
        load_task(f"shards(path='{copied / 'nowhere'}')")


def test_the_command_writes_shards_and_indexes_those_of_others(photos, copied, tmp_path):
    runner = pytest.importorskip("typer.testing").CliRunner()
    from equipoise.cli import app

    done = runner.invoke(app, ["shards", str(photos), "--out", str(tmp_path / "made"), "--megabytes", "1"])
    assert done.exit_code == 0 and "train: 45 images of 3 classes, 5 to 30 a class" in done.output
    assert [path.name for path in sorted((tmp_path / "made").glob("*.tar"))] == ["train-000000.tar"]
    before = (copied / INDEX).read_bytes()
    (copied / INDEX).unlink()
    assert runner.invoke(app, ["shards", str(copied)]).exit_code == 0
    assert (copied / INDEX).read_bytes() == before


def test_nothing_is_written_over(photos, written):
    with pytest.raises(EquipoiseError, match="is there already"):
        write_shards(photos, written)


def test_webdataset_reads_them(written):
    webdataset = pytest.importorskip("webdataset")  # no dependency: tried by whoever has it
    paths = sorted(str(path) for path in written.glob("*.tar"))
    samples = list(webdataset.WebDataset(paths, shardshuffle=False).to_tuple("png", "cls"))
    data = ShardDataset(written)
    assert [(data.images.content(i), b"%d" % label) for i, label in enumerate(data.labels)] == samples
