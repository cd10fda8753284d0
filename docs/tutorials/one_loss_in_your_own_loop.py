"""
One loss in your own loop
=========================

You have a training loop and want to change one line of it. Every loss of Equipoise is a plain ``torch.nn.Module`` that
takes logits and labels, so ``pip install equipoise`` (torch and numpy, nothing else) is enough. The images here come
with scikit-learn.
"""

# %%
# Real digits, made rare
# ----------------------
# Zeros stay common; of each next digit fewer images are kept, down to a twentieth for the nines. The test images stay
# balanced.

import torch
from sklearn.datasets import load_digits

from equipoise.data import long_tailed_counts

torch.set_num_threads(1)  # the fastest for a network as small as this one
images, labels = (torch.tensor(array) for array in load_digits(return_X_y=True))
images = images.float() / 16
generator = torch.Generator().manual_seed(0)
order = torch.randperm(len(labels), generator=generator)
test, rest = order[:500], order[500:]

class_counts = torch.as_tensor(long_tailed_counts(num_classes=10, n_max=120, ratio=20))
train = torch.cat([rest[labels[rest] == digit][:count] for digit, count in enumerate(class_counts.tolist())])
print("training images of each digit:", class_counts.tolist())

# %%
# The loop
# --------
# There is nothing special about it. ``criterion`` is the only thing that will change.


def balanced_accuracy_with(criterion, seed=0):
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _epoch in range(30):
        for batch in train[torch.randperm(len(train))].split(32):
            optimizer.zero_grad()
            criterion(network(images[batch]), labels[batch]).backward()
            optimizer.step()
    right = network(images[test]).argmax(1) == labels[test]
    return torch.stack([right[labels[test] == digit].float().mean() for digit in range(10)]).mean().item()


# %%
# Three losses
# ------------
# Cross-entropy does not know the class sizes; the other two do. Three seeds each, because one run says little.

from equipoise.losses import BalancedSoftmaxLoss, CDTLoss, CrossEntropyLoss

losses = {
    "cross-entropy": CrossEntropyLoss(),
    "balanced softmax": BalancedSoftmaxLoss(class_counts),
    "class-dependent temperatures": CDTLoss(class_counts, gamma=0.2),
}
for name, loss in losses.items():
    scores = torch.tensor([balanced_accuracy_with(loss, seed) for seed in range(3)])
    print(f"{name:30} {100 * scores.mean():.1f} ± {100 * scores.std():.1f} % balanced accuracy")

# %%
# Weights for samples
# -------------------
# A loss gives a value for each sample with ``reduction="none"``, so any weighting is one multiplication. The class
# weights of the effective number of samples have mean 1 over the classes.

from equipoise.imbalance import effective_number_weights

class_weights = effective_number_weights(class_counts, beta=0.999).float()
print("weight of each digit:", [round(weight, 2) for weight in class_weights.tolist()])
per_sample = CrossEntropyLoss(reduction="none")


def weighted(logits, target):
    return (class_weights[target] * per_sample(logits, target)).mean()


scores = torch.tensor([balanced_accuracy_with(weighted, seed) for seed in range(3)])
print(f"{'weighted cross-entropy':30} {100 * scores.mean():.1f} ± {100 * scores.std():.1f} % balanced accuracy")

# %%
# Which of these is best *for your data* is a question for a study: see the tutorial for researchers.
