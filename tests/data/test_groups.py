"""Images that belong together stay on one side of every split, and without groups nothing changes."""

import numpy as np
import pytest

from equipoise.core import EquipoiseError
from equipoise.data import cache, load_task, placed_near, placeless, split_by_group
from equipoise.data.groups import merged

Image = pytest.importorskip("PIL.Image")


def write(base, classes=2, films=10, frames=4):
    """Films of so many frames; the grey of an image tells its class and film."""
    for c in range(classes):
        (base / f"class{c}").mkdir(parents=True, exist_ok=True)
        for film in range(films):
            for frame in range(frames):
                grey = np.full((6, 6), 100 * c + film, np.uint8)
                Image.fromarray(grey).save(base / f"class{c}" / f"{film:05}_{frame:05}.png")
    return base


def load(base, more="", **options):
    return load_task(f"folder(path={str(base)!r}, size=4{more})", **options)


def films(split):
    return split.images[:, 0, 0, 0].tolist()


BY_NAME = ", group='(.+)_[0-9]+'"


def test_films_stay_whole(tmp_path):
    task = load(write(tmp_path), BY_NAME)
    sides = [films(split) for split in (task.train, task.valid, task.test)]
    assert sorted(f for side in sides for f in side) == sorted(
        f for f in [*range(10), *range(100, 110)] for _ in range(4)
    )
    assert not set(sides[0]) & set(sides[1]) and not set(sides[0]) & set(sides[2]) and not set(sides[1]) & set(sides[2])
    assert [len(side) for side in sides] == [56, 8, 16]
    assert task.test.labels.bincount().tolist() == [8, 8], "20 % of 40 images, and 2 films of 4"
    torn = load(tmp_path)
    assert set(films(torn.train)) & set(films(torn.test)), "without groups they are torn"


def test_the_same_groups_give_the_same_split_and_others_another(tmp_path):
    write(tmp_path)
    first, again, other = load(tmp_path, BY_NAME), load(tmp_path, BY_NAME), load(tmp_path)
    assert (first.content, first.fingerprint) == (again.content, again.fingerprint)
    assert len({first.content, other.content}) == 2 and first.fingerprint != other.fingerprint
    assert load(tmp_path, BY_NAME, seed=1).fingerprint != first.fingerprint


def test_groups_change_the_content_where_there_is_a_test_folder(tmp_path):
    write(tmp_path / "train")
    write(tmp_path / "test", films=2)
    with_groups, without = load(tmp_path, BY_NAME), load(tmp_path)
    assert with_groups.content != without.content
    assert not set(films(with_groups.train)) & set(films(with_groups.valid))


def test_a_file_of_groups(tmp_path):
    base = write(tmp_path / "photos", frames=2)
    lines = [f"./class{c}/{film:05}_{f:05}.png,{c}-{film // 2},x" for c in (0, 1) for film in range(10) for f in (0, 1)]
    (tmp_path / "groups.csv").write_text("\n".join(["path,group,camera", *lines, "gone/1.png,x,x"]))
    task = load(base, f", groups={str(tmp_path / 'groups.csv')!r}")
    pairs = [{f // 2 for f in films(split)} for split in (task.train, task.valid, task.test)]
    assert sum(map(len, pairs)) == len(set.union(*pairs)) == 10
    with pytest.raises(EquipoiseError, match="leave nothing to test on: no class has more than one"):
        load(base, f", groups={str(tmp_path / 'groups.csv')!r}, group='camera'")


def test_a_file_of_groups_may_move(tmp_path, monkeypatch):
    base = write(tmp_path / "photos")
    (tmp_path / "groups.csv").write_text("path,group\nclass0/00000_00000.png,a\nclass0/00001_00000.png,a\n")
    name = f"folder(path='photos', size=4, groups={str(tmp_path / 'groups.csv')!r})"
    assert placeless(name) == "folder(size=4)"
    monkeypatch.chdir("/")
    near = placed_near("folder(path='photos', size=4, groups='groups.csv')", tmp_path)
    assert near == f"folder(path={str(base)!r}, size=4, groups={str(tmp_path / 'groups.csv')!r})"
    assert load_task(near).content != load(base).content


def test_groups_outlive_a_copy_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "WORTH_SHARING", 0)
    base = write(tmp_path / "photos")
    for _ in range(2):
        task = load(base, BY_NAME, cache=tmp_path / "cache")
        assert not set(films(task.train.dense())) & set(films(task.valid.dense()))
        assert task.fingerprint == load(base, BY_NAME).fingerprint


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", group='('", "group = '\\(' is no regular expression .*write e.g."),
        (", group='film'", "is found in none of 80 paths, such as class0/00000_00000.png"),
        (", groups='absent.csv'", "absent.csv is not a file; give the CSV file of paths"),
    ],
)
def test_mistakes_are_told(tmp_path, more, message):
    with pytest.raises(EquipoiseError, match=message):
        load(write(tmp_path), more)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; its first line must name the columns"),
        ("path,group\na,b,c\nd,e\n", "has 2 columns, and other numbers of cells in row 2;"),
        ("path,film\na,b\n", "has no column 'group'; it has path, film"),
        ("name,group\na,b\n", "one of them must be called path, file_name"),
        ("path,group\nphotos/a.png,b\n", "names none of the training images, which are class0/00000_00000.png"),
    ],
)
def test_mistakes_of_a_file_are_told(tmp_path, text, message):
    (tmp_path / "groups.csv").write_text(text)
    with pytest.raises(EquipoiseError, match=message):
        load(write(tmp_path / "photos"), f", groups={str(tmp_path / 'groups.csv')!r}")


def test_groups_and_numbers_of_images_do_not_go_together(tmp_path):
    with pytest.raises(EquipoiseError, match="valid_per_class would tear the groups"):
        load(write(tmp_path), BY_NAME, valid_per_class=2)


# The split alone


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_kept_as_nearly_as_groups_allow(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 300, 3000)
    labels = rng.choice(4, 300, p=[0.6, 0.25, 0.1, 0.05])[groups]
    mixed = rng.random(300) < 0.1  # some groups have images of all classes
    labels = np.where(mixed[groups], rng.integers(0, 4, 3000), labels)
    held, rest = split_by_group(labels, groups, 4, 0.2, seed)
    assert sorted(np.concatenate([*held, *rest])) == list(range(3000))
    assert not set(groups[np.concatenate(held)]) & set(groups[np.concatenate(rest)])
    for c in range(4):
        assert set(labels[held[c]]) == set(labels[rest[c]]) == {c}
        largest = np.bincount(groups[labels == c]).max()
        assert abs(len(held[c]) - 0.2 * (labels == c).sum()) <= largest
    again, _ = split_by_group(labels, groups, 4, 0.2, seed)
    assert all(np.array_equal(a, b) for a, b in zip(held, again, strict=True))


def test_no_class_is_held_out_whole_and_none_is_left_out():
    labels, groups = np.array([0] * 10 + [1] * 10 + [2] * 3), np.array([0] * 5 + [1] * 5 + [2] * 10 + [3, 4, 5])
    held, rest = split_by_group(labels, groups, 3, 0.2, 0)
    assert [len(pool) for pool in held] == [5, 0, 1], "too large a share rather than none; one group stays in training"
    assert [len(pool) for pool in rest] == [5, 10, 2]
    nothing, _ = split_by_group(labels, groups, 3, 0.0, 0)
    assert [len(pool) for pool in nothing] == [0, 0, 0]


def test_chains_of_groups_are_one():
    assert merged(4, [["a", "a", None, None], [None, 1, 1, None]]).tolist() == [0, 0, 0, 1]


def test_what_is_left_out(tmp_path):
    photos = tmp_path / "photos"
    for name in ("a/1.png", "a/2.png", "a/3.png", "b/1.png", "b/2.png"):
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(photos / name)
    (photos / "a" / "broken.png").write_text("no image")
    listing = tmp_path / "leave_out.csv"
    listing.write_text("path\na/broken.png\nb/2.png\n")
    name = f"folder(path={str(photos)!r}, size=8, leave_out={str(listing)!r})"
    task = load_task(name, valid=0)
    assert len(task.train) + len(task.test) == 4 and task.class_counts.tolist() == [2, 1]
    listing.write_text("path\na/broken.png\n")
    assert load_task(name, valid=0).fingerprint != task.fingerprint
