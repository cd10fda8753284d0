"""
Evidence for a paper
====================

You compare methods and want claims that hold: paired runs, intervals, a test that assumes little, and tables that say
how many runs stand behind each number. It needs ``pip install 'equipoise[study]'``.
"""

# %%
# Before: what can so many seeds show?
# ------------------------------------
# A sign-flip test over n pairs cannot give a p below 2 / 2ⁿ, and Holm's correction over the methods asks for more.

from equipoise.analysis import seeds_needed, smallest_n_for_claim

for others in (1, 3, 8):
    print(f"{others} compared with a baseline: at least {smallest_n_for_claim(comparisons=others)} seeds")

# %%
# The study
# ---------
# Rows of the papers' tables have names (``equipoise presets`` lists them), and each dial can be set by hand. A TOML
# file would say the same. Runs that are in the folder already are not done again.
#
# Every worker process imports the script that started it, hence the line with ``__name__``; a notebook needs none.

import tempfile

import equipoise
from equipoise.report import paper_table, render_latex
from equipoise.study import Listener

study = {
    "question": "Long-tailed digits: is weighing worth it, when a correction after training costs nothing?",
    "baseline": "plain",
    "metric": "balanced_accuracy",
    "seeds": 7,
    "task": {"name": "digits", "imbalance": "long_tailed", "ratio": 20},
    "base": {"model": "cnn_small", "epochs": 12},
    "methods": {
        "plain": {},
        "weighted": {"weighting": "effective_number(beta=0.999)"},
        "adjusted": {"posthoc": "logit_adjust(tau=1.0)"},
    },
}
if __name__ == "__main__":
    results = equipoise.run(study, out=tempfile.mkdtemp(), listener=Listener())  # which is silent
    print("\n".join(results.verdict.sentences()))
    print(render_latex(paper_table(results.collected)))  # to paste; also in table.tex after results.report()

# %%
# The same statistics for numbers from elsewhere
# ----------------------------------------------
# They are functions on arrays. These six differences could be anyone's, in percentage points.

from equipoise.analysis import mean_interval, sign_flip_test

differences = [1.2, 0.4, 0.9, 1.5, 0.2, 0.8]
print("mean and 95 % interval:", mean_interval(differences))
print("p of the sign-flip test:", sign_flip_test(differences))
print("seeds that would show such a difference in 8 methods:", seeds_needed(differences, comparisons=8))

# %%
# :doc:`/evidence` says what the claims mean and how the error rate is kept; ``equipoise run --until-decided`` adds
# seeds in planned rounds.
