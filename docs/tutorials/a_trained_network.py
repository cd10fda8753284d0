"""
A network that is trained already
=================================

You have a network with batch norm and do not want to train it again. Three corrections need only validation data:
example weighing of its norms, logit adjustment and a temperature. Nothing here needs more than
``pip install 'equipoise[study]'``, whose scikit-learn and SciPy give the digits and the analysis.
"""

# %%
# A network from somewhere
# ------------------------
# It stands for yours: an ordinary PyTorch network with batch norms, trained with plain cross-entropy on digits of
# which some are rare.

import torch
from torch import nn

from equipoise.data import load_task

torch.set_num_threads(1)  # the fastest for a network as small as this one
task = load_task("digits", imbalance="long_tailed", ratio=20, valid=0.2, seed=0)


def tensors(split):
    return torch.as_tensor(split.images).float() / 255, torch.as_tensor(split.labels)


train_x, train_y = tensors(task.train)
valid_x, valid_y = tensors(task.valid)
test_x, test_y = tensors(task.test)
print("training images of each digit:", task.class_counts.tolist())

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Linear(32, 10),
)  # fmt: skip
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
for _epoch in range(40):
    for batch in torch.randperm(len(train_y)).split(32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(train_x[batch]), train_y[batch]).backward()
        optimizer.step()
network.eval()

# %%
# Where it stands
# ---------------
# Calibration is judged by the probabilities: an expected calibration error of 5 % means that, on average, the network
# is right 5 percentage points more or less often than it says.

from equipoise.analysis import balanced_accuracy, expected_calibration_error


@torch.no_grad()
def judge(name, logits):
    accuracy = balanced_accuracy(logits.argmax(1), test_y, num_classes=10)
    error = expected_calibration_error(logits.softmax(1), test_y)
    print(f"{name:20} balanced accuracy {100 * accuracy:.1f} %, calibration error {100 * error:.1f} %")


with torch.no_grad():
    judge("as it was", network(test_x))

# %%
# Logit adjustment
# ----------------
# A network trained on a long tail believes in the long tail. Subtracting the logarithm of each class's share takes
# that belief away.

from equipoise.imbalance import logit_adjustment

with torch.no_grad():
    adjusted = logit_adjustment(network(test_x), task.class_counts, tau=1.0)
judge("logit adjustment", adjusted)

# %%
# Example weighing
# ----------------
# In training a batch norm sees the example it normalizes; at test time its moving averages do not. Giving each example
# a share α in its own statistics closes that gap. α is chosen on validation data; the weights stay what they are.

from equipoise.norms import example_weight, tune_example_weight

alpha = tune_example_weight(network, [(valid_x, valid_y)], metric="balanced_accuracy", progress=None)
print(f"α = {alpha:.3g}")
with torch.no_grad(), example_weight(network, alpha):
    judge("example weighing", network(test_x))

# %%
# A temperature
# -------------
# It changes no prediction, only how sure the network says it is. The validation images here are few, and as long-tailed
# as the training images; the test images are balanced. What is calibrated on one kind need not be on the other.

from equipoise.analysis import fit_temperature

with torch.no_grad():
    temperature = fit_temperature(network(valid_x), valid_y)
    print(f"temperature {temperature:.2f}")
    judge("temperature", network(test_x) / temperature)

# %%
# In a study the same corrections are a dial, ``posthoc = "logit_adjust(tau=1.0)"``, and share the training they
# correct. One run, as here, does not show which of them helps: for that there are seeds and intervals.
