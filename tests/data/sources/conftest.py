"""Tiny copies of published sets, in their official layouts."""

import numpy as np
import pytest

from equipoise.core import card
from equipoise.data import load_task


class Disk:
    """A folder to write a set into, and to read it from."""

    def __init__(self, folder):
        self.folder = folder

    def images(self, names, value):
        """Images of 8 × 8, each of one grey value: `value` and the numbers after it."""
        from PIL import Image

        for i, name in enumerate(names):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((8, 8, 3), (value + i) % 256, np.uint8)).save(path)

    def lines(self, name, *lines):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))

    def mat(self, name, **variables):
        from scipy.io import savemat

        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        savemat(path, variables, do_compression=True)

    def read(self, task, **parameters):
        return card(task, "task").factory(root=self.folder, **parameters)

    def load(self, task, **options):
        return load_task(task, root=self.folder, **options)


def grey_values(split):
    """(grey value, label) of every image, in order."""
    images = split.dense().images
    return list(zip(images[:, 0, 4, 4].tolist(), split.labels.tolist(), strict=True))


@pytest.fixture
def disk(tmp_path):
    pytest.importorskip("PIL.Image")
    return Disk(tmp_path / "data")


@pytest.fixture(scope="session")
def module_disk():
    """For sets of many images, which the tests of a file share: a `Disk` in the folder that it is given."""
    pytest.importorskip("PIL.Image")
    return Disk


@pytest.fixture
def values():
    return grey_values
