"""What a study says of its data before it runs."""

from equipoise.store import Store
from equipoise.study import Study
from equipoise.study.binding import bind


def test_a_batch_larger_than_the_data_is_told(tmp_path):
    plain = {
        "baseline": "a",
        "task": {"name": "blobs", "n_max": 20, "valid": 0},
        "base": {"model": "cnn_small"},
        "methods": {"a": {"batch_size": 60}, "b": {"batch_size": 61}},
    }
    said: list[str] = []
    bind(Study.from_dict(plain), Store(tmp_path), said.append)
    assert "batch_size = 61 is more than there are training images: every batch has all 60 of them" in "\n".join(said)
    assert "batch_size = 60" not in "\n".join(said)
