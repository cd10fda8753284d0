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
# Rows of the papers' tables have names (``equipoise presets`` lists them), and each dial can be set by hand.

import subprocess
import sys
import tempfile
from pathlib import Path

place = Path(tempfile.mkdtemp())
(place / "study.toml").write_text("""
question = "On long-tailed digits, is deferred weighing worth it?"
baseline = "plain"
metric = "balanced_accuracy"
seeds = 7

[task]
name = "digits"
imbalance = "long_tailed"
ratio = 20

[base]
model = "cnn_small"
epochs = 12

[methods.plain]

[methods.weighted]
weighting = "effective_number(beta=0.999)"

[methods.deferred]
weighting = "effective_number(beta=0.999, start=0.8, normalize='batch')"
""")
command = [sys.executable, "-m", "equipoise", "run", "study.toml"]
print(subprocess.run(command, capture_output=True, text=True, cwd=place, check=True).stdout)

# %%
# The verdict as data
# -------------------
# What the terminal printed can be read again at any time, without training anything.

from equipoise.report import collect, paper_table, render_latex
from equipoise.store import Store

results = collect(Store(place / "runs" / "study"))
for sentence in results.verdict.sentences():
    print(sentence)

# %%
# A table to paste
# ----------------
# ``table.tex`` in the study's folder has the same.

print(render_latex(paper_table(results)))

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
