"""All pairs are compared, in blocks; and sets are joined."""

import io

import numpy as np
import pytest
import torch

from equipoise.auditing import duplicates
from equipoise.auditing.duplicates import components, near_pairs

Image = pytest.importorskip("PIL.Image")
CPU = torch.device("cpu")


def silent(*news):
    pass


def smooth(rng, n):
    """Images as photographs are: most of them in low frequencies."""
    coarse = torch.from_numpy(rng.normal(128, 50, (n, 3, 8, 8)))
    fine = torch.nn.functional.interpolate(coarse, (24, 24), mode="bicubic").clamp(0, 255)
    return fine.permute(0, 2, 3, 1).round().to(torch.uint8).numpy()


def through_jpeg(photo):
    """As a file of 36 × 36 pixels and quality 75, and small again."""
    file = io.BytesIO()
    Image.fromarray(photo).resize((36, 36)).save(file, "JPEG", quality=75)
    return np.asarray(Image.open(file).resize((24, 24), Image.Resampling.BILINEAR))


def test_copies_are_found_in_any_block(monkeypatch):
    rng = np.random.default_rng(0)
    views = smooth(rng, 300)
    noisy = np.clip(views[:40] * 0.9 + rng.normal(0, 2, views[:40].shape), 0, 255).astype(np.uint8)
    every = np.concatenate([views, noisy])
    expected = {(i, 300 + i) for i in range(40)}
    for block in (4096, 64):
        monkeypatch.setattr(duplicates, "BLOCK", block)
        pairs = near_pairs(every, torch.zeros(340), CPU, silent)
        assert {tuple(pair) for pair in pairs.tolist()} == expected
    other_shape = torch.cat((torch.zeros(300), torch.ones(40)))
    assert not len(near_pairs(every, other_shape, CPU, silent)), "images of another shape are other images"


def test_jpeg_at_a_small_size_hides_no_copy():
    """Detail that JPEG took away does not make another image; another image of the same kind is one."""
    rng = np.random.default_rng(0)
    views = smooth(rng, 60)
    pale = 0.8 * views.mean(3, keepdims=True) + 0.2 * views
    photos = np.clip(pale + rng.normal(0, 5, (60, 24, 24, 1)), 0, 255).astype(np.uint8)
    copies = np.stack([through_jpeg(photo) for photo in photos])
    pairs = near_pairs(np.concatenate([photos, copies]), torch.zeros(120), CPU, silent)
    assert {tuple(pair) for pair in pairs.tolist()} == {(i, 60 + i) for i in range(60)}


def test_of_many_alike_few_pairs_are_looked_at(monkeypatch):
    monkeypatch.setattr(duplicates, "BLOCK", 16)
    monkeypatch.setattr(duplicates, "AT_ONCE", 20)
    looked_at, verified = [], duplicates._verified
    monkeypatch.setattr(duplicates, "_verified", lambda pairs, *rest: looked_at.append(pairs) or verified(pairs, *rest))
    rng = np.random.default_rng(0)
    views = np.concatenate([np.repeat(smooth(rng, 1), 40, 0), smooth(rng, 60)])
    groups = components(100, near_pairs(views, torch.zeros(100), CPU, silent))
    assert len(set(groups[:40])) == 1 and len(set(groups)) == 61
    assert sum(map(len, looked_at)) < 40 * 39 / 2 / 3 and max(map(len, looked_at)) <= 20


def test_flat_images_are_like_nothing():
    views = np.full((60, 24, 24, 3), 200, np.uint8) + np.random.default_rng(0).integers(0, 2, (60, 24, 24, 3), np.uint8)
    assert not len(near_pairs(views, torch.zeros(60), CPU, silent))
