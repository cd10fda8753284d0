"""Tasks: disjoint and stratified splits, the imbalance asked for, an untouched test set, the seed, the errors."""

import numpy as np
import pytest
import torch

from equipoise import core
from equipoise.core import EquipoiseError, Spec, card
from equipoise.data import Source, Split, load_task, long_tailed_counts, step_counts
from equipoise.data import load as load_module

CLASS_NAMES = tuple("abcdefghij")


def made_of(counts, test=5):
    """A set whose pixels tell the index of each image, so that a test can see which ones were drawn."""
    labels = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)])
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))]
    index = torch.arange(len(labels))
    pixels = torch.stack([index % 256, index // 256], 1).to(torch.uint8)[:, None, None]
    test_labels = torch.arange(len(counts)).repeat(test)
    held = Split(torch.full((len(test_labels), 1, 1, 2), 255, dtype=torch.uint8), test_labels)
    return Source(Split(pixels, labels), held, CLASS_NAMES[: len(counts)])


@pytest.fixture
def source_of(monkeypatch):
    """Registers a task "made" with the given class counts."""

    def enter(counts):
        source = made_of(counts)
        entry = core.Card("made", "task", lambda root=None: source)
        monkeypatch.setitem(core.registry._REGISTRY, "made", entry)
        load_module._read.cache_clear()
        load_module._published.cache_clear()
        return source

    yield enter
    load_module._read.cache_clear()
    load_module._published.cache_clear()


def index_of(split):
    return [int(low) + 256 * int(high) for low, high in split.images[:, 0, 0]]


def counts_of(split, num_classes=10):
    return torch.bincount(split.labels, minlength=num_classes).tolist()


@pytest.mark.parametrize("ratio", [1, 10, 100])
@pytest.mark.parametrize("imbalance", ["long_tailed", "step"])
def test_splits_are_disjoint_and_their_labels_belong(source_of, imbalance, ratio):
    source = source_of([400] * 10)
    task = load_task("made", imbalance=imbalance, ratio=ratio, valid=0.2)
    train, valid = index_of(task.train), index_of(task.valid)
    assert not set(train) & set(valid)
    assert len(set(train)) == len(train) and len(set(valid)) == len(valid)
    assert task.train.labels.tolist() == source.train.labels[train].tolist()
    assert task.valid.labels.tolist() == source.train.labels[valid].tolist()


def test_the_imbalance_is_exactly_the_published_one(source_of):
    source_of([5000] * 10)
    task = load_task("made", imbalance="long_tailed", ratio=100, valid=0)
    assert task.class_counts.tolist() == [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50]
    assert len(task.train) == 12406 and len(task.valid) == 0
    assert task.valid.images.shape == (0, 1, 1, 2) and task.valid.images.dtype == torch.uint8


def test_train_and_validation_have_the_same_shape(source_of):
    source_of([500] * 10)
    task = load_task("made", imbalance="long_tailed", ratio=20, valid=0.1)
    assert counts_of(task.train) == long_tailed_counts(10, 450, 20)
    assert counts_of(task.valid) == long_tailed_counts(10, 50, 20)
    task = load_task("made", imbalance="step", ratio=20, valid=0.1)
    assert counts_of(task.train) == step_counts(10, 450, 20)
    assert counts_of(task.valid) == step_counts(10, 50, 20)


def test_validation_keeps_one_image_of_each_class(source_of):
    source_of([500] * 10)
    task = load_task("made", imbalance="long_tailed", ratio=400, valid=0.1)
    assert counts_of(task.valid)[-1] == 1 and 0 in long_tailed_counts(10, 50, 400)


def test_the_smallest_class_is_the_largest_count(source_of):
    source_of([60, 40, 50])
    task = load_task("made", imbalance="long_tailed", ratio=4, valid=0)
    assert counts_of(task.train, 3) == [40, 20, 10]


def test_everything_without_imbalance(source_of):
    source_of([60, 40, 50])
    task = load_task("made", valid=0.1)
    assert counts_of(task.train, 3) == [54, 36, 45]
    assert counts_of(task.valid, 3) == [6, 4, 5]
    assert sorted(index_of(task.train) + index_of(task.valid)) == list(range(150))
    assert index_of(load_task("made", valid=0).train) == list(range(150))


def test_n_max(source_of):
    source_of([60, 40, 50])
    assert counts_of(load_task("made", n_max=45, valid=0).train, 3) == [45, 40, 45]
    assert counts_of(load_task("made", imbalance="long_tailed", ratio=4, n_max=20, valid=0).train, 3) == [20, 10, 5]
    assert counts_of(load_task("made", imbalance="long_tailed", ratio=4, n_max=1000, valid=0).train, 3) == [40, 20, 10]


def test_the_test_set_is_never_changed(source_of):
    source = source_of([60, 40, 50])
    before = source.test.images.clone()
    for options in ({}, {"imbalance": "long_tailed", "ratio": 10}, {"n_max": 5}, {"valid": 0, "seed": 7}):
        task = load_task("made", **options)
        assert torch.equal(task.test.images, before) and torch.equal(task.test.labels, source.test.labels)


def test_same_seed_same_images_other_seed_other_images(source_of):
    source_of([100] * 10)

    def drawn(seed):
        task = load_task("made", imbalance="long_tailed", ratio=10, seed=seed)
        return index_of(task.train), index_of(task.valid), task.fingerprint

    assert drawn(3) == drawn(3)
    for a, b in zip(drawn(3), drawn(4), strict=True):
        assert a != b


def test_the_draw_does_not_depend_on_the_imbalance(source_of):
    """Of one seed, a more imbalanced set is a part of a less imbalanced one; held-out images stay held out."""
    source_of([200] * 10)

    def load(**options):
        task = load_task("made", seed=5, **options)
        return set(index_of(task.train)), set(index_of(task.valid))

    everything, held = load()
    mild, mild_held = load(imbalance="long_tailed", ratio=10)
    strong, strong_held = load(imbalance="long_tailed", ratio=50)
    step, _ = load(imbalance="step", ratio=50)
    assert strong < mild < everything and step < everything
    assert strong_held < mild_held < held
    assert not held & (mild | strong | step)


def test_the_draw_leaves_random_states_alone(source_of):
    source_of([50, 50])
    np.random.seed(0)
    state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()
    load_task("made", seed=1)
    assert (np.random.get_state()[1] == state).all() and torch.equal(torch.get_rng_state(), torch_state)


def test_fingerprint_tells_every_difference(source_of):
    source_of([200] * 10)
    options = [
        {},
        {"seed": 1},
        {"valid": 0},
        {"valid": 0.2},
        {"n_max": 50},
        {"imbalance": "long_tailed", "ratio": 10},
        {"imbalance": "step", "ratio": 10},
    ]
    prints = [load_task("made", **o).fingerprint for o in options]
    assert len(set(prints)) == len(options)
    assert all(len(p) == 16 and int(p, 16) >= 0 for p in prints)


def test_fingerprint_covers_name_train_and_validation():
    a, b = np.array([1, 2]), np.array([1, 3])
    drawn = (("n", None, a, a), ("n", None, a, b), ("n", None, b, a), ("m", None, a, a), ("n", "c", a, a))
    assert len({load_module._fingerprint(*x) for x in drawn}) == 5
    assert load_module._fingerprint("n", None, a, b[:0]) != load_module._fingerprint("n", None, a[:0], a)


def test_fingerprint_is_fixed():
    # sha256 of the name, both lengths and all indices: a change means that old records no longer compare
    assert load_task("blobs", imbalance="long_tailed", ratio=100, valid=0).fingerprint == "d04b9d650d1a548f"


def test_files_are_read_once(source_of, monkeypatch):
    source = source_of([20, 20])
    reads = []
    monkeypatch.setitem(
        core.registry._REGISTRY, "made", core.Card("made", "task", lambda root=None: reads.append(root) or source)
    )
    for seed in range(3):
        load_task("made", seed=seed)
    assert reads == [None]
    load_task("made", root="elsewhere")
    assert reads == [None, "elsewhere"]
    monkeypatch.setenv("EQUIPOISE_DATA", "another")
    load_task("made")
    assert len(reads) == 3, "other files may be found now"


@pytest.mark.parametrize("name", ["digits", "blobs"])
def test_real_tasks(name):
    task = load_task(name, imbalance="long_tailed", ratio=20)
    assert task.name == name and task.num_classes == len(task.class_names)
    assert min(counts_of(task.valid, task.num_classes)) >= 1
    assert int(task.class_counts.max()) >= 15 * int(task.class_counts.min())
    images = task.train.images[:8]
    usual = card(name, "task").companions.get("augment", "none")
    assert Spec.parse(usual).build("augment")(images).shape == images.shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"imbalance": "long_tailed", "ratio": 0.5}, r"ratio .*at least 1, not 0\.5"),
        ({"imbalance": "long_tailed", "ratio": "ten"}, "ratio .*not 'ten'"),
        ({"imbalance": "longtailed", "ratio": 10}, "no imbalance is named 'longtailed'. Did you mean 'long_tailed'?"),
        ({"imbalance": "zzz"}, "There is: long_tailed, step."),
        ({"ratio": 10}, "imbalance='long_tailed'"),
        ({"valid": 1}, "valid must be below 1"),
        ({"valid": -0.1}, "valid must lie between 0 and 1"),
        ({"n_max": 0}, "n_max must be a whole number, at least 1"),
        ({"n_max": 2.5}, "n_max must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        (
            {"imbalance": "long_tailed", "ratio": 1000},
            "class 'right' is left with no image; lower the ratio or raise n_max",
        ),
        ({"imbalance": "step", "ratio": 10, "n_max": 5}, "class 'right' is left with no image"),
        ({"valid": 0.9999}, "all 500 training images of class 'top' of blobs would be held out.*lower valid"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(EquipoiseError, match=message):
        load_task("blobs", **options)


def test_an_unknown_task_has_a_suggestion():
    with pytest.raises(EquipoiseError, match=r"no task is named 'digit'\. Did you mean 'digits'\?"):
        load_task("digit")


def test_classes_with_too_few_images(source_of):
    source_of([20, 1])
    task = load_task("made")
    assert counts_of(task.train, 2) == [18, 1] and counts_of(task.valid, 2) == [2, 0], "one image is trained on"
    assert counts_of(load_task("made", valid=0).train, 2) == [20, 1]
    source_of([20, 0])
    for valid in (0, 0.1):
        with pytest.raises(EquipoiseError, match="class 'b' of made has no training image"):
            load_task("made", valid=valid)


def _load_or_skip(name, **options):
    try:
        return load_task(name, **options)
    except EquipoiseError as error:
        if "were not found" not in str(error):
            raise
        pytest.skip(f"{name} is not on this machine; EQUIPOISE_DATA may name its folder")


def test_real_fashion_mnist():
    task = _load_or_skip("fashion_mnist", valid=0)
    assert task.train.images.shape == (60_000, 1, 28, 28) and task.test.images.shape == (10_000, 1, 28, 28)
    assert counts_of(task.train) == [6000] * 10 and counts_of(task.test) == [1000] * 10
    assert task.train.labels[:5].tolist() == [9, 0, 0, 3, 0]


@pytest.mark.parametrize(("name", "total"), [("cifar10", 12406), ("cifar100", 10847)])
def test_real_cifar(name, total):
    task = _load_or_skip(name, imbalance="long_tailed", ratio=100, valid=0)
    assert len(task.train) == total and len(task.test) == 10_000
    assert len(set(counts_of(task.test, task.num_classes))) == 1
