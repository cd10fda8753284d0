"""Further test sets of ImageNet in their layouts: -C, -v2, -A, -R and -Sketch; mCE with AlexNet's errors."""

import numpy as np
import pytest
import torch

from equipoise.analysis import mean_corruption_error, subset_logits
from equipoise.core import EquipoiseError
from equipoise.data import CORRUPTIONS, Split, Task, imagenet_c_folders, load_further

Image = pytest.importorskip("PIL.Image")
NAMES = ("n01440764", "n01443537", "n01484850")
GROUP = {"gaussian_noise": "noise", "motion_blur": "blur", "snow": "weather", "pixelate": "digital"}


def imagenet():
    empty = Split(torch.zeros(1, 3, 6, 6, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64))
    return Task("imagenet", empty, empty, empty, NAMES, "")


def write(folder, name, value):
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((8, 8, 3), value, np.uint8)).save(folder / name)


def test_imagenet_c(tmp_path):
    """A network that always says the first class is wrong on half of each set; AlexNet's errors are as published."""
    for i, name in enumerate(CORRUPTIONS):
        for severity in range(1, 6):
            place = tmp_path / GROUP.get(name, "") / name / str(severity)
            write(place / NAMES[0], "ILSVRC2012_val_00000001.JPEG", 10 * i + severity)
            write(place / NAMES[2], "ILSVRC2012_val_00000002.JPEG", 10 * i + severity)
    (tmp_path / "extra" / "spatter" / "1").mkdir(parents=True)
    folders = imagenet_c_folders(tmp_path)
    assert len(folders) == 75
    errors = {name: [0.0] * 5 for name in CORRUPTIONS}
    for (name, severity), folder in folders.items():
        further = load_further(folder, imagenet())
        assert further.split.in_memory().images[0, 0, 3, 3] == 10 * list(CORRUPTIONS).index(name) + severity
        errors[name][severity - 1] = float((further.split.labels != 0).double().mean())
    assert {rate for rates in errors.values() for rate in rates} == {0.5}
    alexnet = (886428, 894468, 922640, 819880, 826268, 785948, 798360, 866816, 826572, 819324, 564592, 853204, 646056)
    expected = 100 * np.mean([0.5e6 / error for error in (*alexnet, 717840, 606500)])
    assert mean_corruption_error(errors) == pytest.approx(expected)


def test_what_imagenet_c_lacks_is_named(tmp_path):
    (tmp_path / "noise" / "gaussian_noise" / "1").mkdir(parents=True)
    with pytest.raises(EquipoiseError, match=r"lacks 74 of the 75 folders of ImageNet-C: gaussian_noise/2, .*Zenodo"):
        imagenet_c_folders(tmp_path)


def test_imagenet_v2_has_class_indices(tmp_path):
    for label in range(3):
        write(tmp_path / "imagenetv2-matched-frequency-format-val" / str(label), "0.jpeg", 10 * label)
    further = load_further(tmp_path / "imagenetv2-matched-frequency-format-val", imagenet())
    assert further.split.labels.tolist() == [0, 1, 2] and not further.absent


@pytest.mark.parametrize("name", ["imagenet-a", "imagenet-r", "sketch"])
def test_predictions_are_among_the_classes_that_are_there(tmp_path, name):
    write(tmp_path / name / NAMES[1], "0.jpg", 1)
    (tmp_path / name / "README.txt").write_text("200 classes")
    further = load_further(tmp_path / name, imagenet())
    assert further.classes == (1,) and further.absent == (NAMES[0], NAMES[2])
    assert subset_logits(torch.tensor([[5.0, 1.0, 3.0]]), further.classes).argmax(dim=1).tolist() == [1]
