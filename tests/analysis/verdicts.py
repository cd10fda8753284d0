"""Made-up scores for the tests of verdicts."""

import numpy as np


def study(n=8, seed=0, **means):
    """Scores that share a seed effect, as paired runs do."""
    rng = np.random.default_rng(seed)
    common = rng.normal(0, 0.01, n)
    return {name: mean + common + rng.normal(0, 0.003, n) for name, mean in means.items()}


def by_name(verdict):
    return {m.name: m for m in verdict.methods}
