"""
A folder of images with rare classes
====================================

You have images in folders, one folder per class, and some classes have few of them. This tutorial asks what to do about
it, with evidence. It needs ``pip install 'equipoise[study,images]'``.
"""

# %%
# A folder
# --------
# So that everyone can run this page, it writes the folder itself: real handwritten digits, few nines. With your own
# photographs, skip this step.

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits

from equipoise.data import long_tailed_counts

place = Path(tempfile.mkdtemp())
digits = load_digits()
for digit, count in enumerate(long_tailed_counts(num_classes=10, n_max=150, ratio=10)):
    folder = place / "photos" / f"digit {digit}"
    folder.mkdir(parents=True)
    for number, image in enumerate(digits.images[digits.target == digit][: int(count)]):
        Image.fromarray((image * 255 / 16).astype("uint8")).save(folder / f"{number:03}.png")
for folder in sorted((place / "photos").iterdir()):
    print(f"{folder.name}: {len(list(folder.iterdir())):3} images")

# %%
# The question
# ------------
# A study is a question, a baseline and the methods to hold against it. Balanced accuracy is the mean of the accuracies
# of the classes, so the rare ones count as much as the common ones. Training images are shifted and mirrored unless you
# choose otherwise; a mirrored digit is none, so ``augment`` is off. Seven seeds are the fewest from which two methods
# can be told from a baseline: see :doc:`/evidence`.

study = place / "study.toml"
study.write_text("""
question = "Some digits are rare. What helps?"
baseline = "plain"
metric = "balanced_accuracy"
seeds = 7

[task]
name = "folder(path='photos', size=8)"

[base]
model = "cnn_small"
epochs = 15
augment = "none"

[methods.plain]

[methods.balanced_softmax]
loss = "balanced_softmax"

[methods.logit_adjusted]
posthoc = "logit_adjust(tau=1.0)"
""")

# %%
# The answer
# ----------
# In a terminal this is ``equipoise run study.toml``. It may be stopped at any moment; the same command goes on.


def equipoise(*words):
    done = subprocess.run([sys.executable, "-m", "equipoise", *words], capture_output=True, text=True, cwd=place)
    print(done.stdout or done.stderr)


equipoise("run", "study.toml")

# %%
# What is on disk
# ---------------
# ``report.html`` is one file to open in a browser or send to a colleague. Every trained network is kept beside it.

for path in sorted((place / "runs" / "study").glob("*.*")):
    print(path.name)

# %%
# Methods and seeds may be added to the file later; only their runs are done. :doc:`/data` says how folders with parts
# of their own for training and testing are read, and :doc:`/methods/README` what else there is to try.
