"""A small study of a long-tailed drawing of blobs, one seed."""

from equipoise.study import Study


def blobs_study(methods, *, epochs):
    return Study.from_dict(
        {
            "baseline": "plain",
            "seeds": 1,
            "task": {"name": "blobs", "imbalance": "long_tailed", "ratio": 10, "n_max": 60},
            "base": {"model": "cnn_small(width=4)", "epochs": epochs, "batch_size": 16},
            "methods": methods,
        }
    )
