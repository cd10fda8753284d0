"""Real images: handwritten digits as PNG files, 32 × 32, one folder per class."""

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="session")
def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.images, data.target


@pytest.fixture(scope="session")
def picture(digits):
    """The image of a row, as large as asked."""
    return lambda row, size=32: Image.fromarray((digits[0][row] * 15.9).astype(np.uint8)).resize((size, size))


@pytest.fixture(scope="session")
def written(digits, picture):
    """Writes so many digits of each class into a folder, and gives the rows of each file."""

    def write(base, counts, seed=0):
        rng, rows = np.random.default_rng(seed), {}
        for c, n in enumerate(counts):
            (base / f"digit{c}").mkdir(parents=True, exist_ok=True)
            for row in rng.permutation(np.flatnonzero(digits[1] == c))[:n].tolist():
                picture(row).save(base / f"digit{c}" / f"{row:05}.png")
                rows[f"digit{c}/{row:05}.png"] = row
        return rows

    return write
