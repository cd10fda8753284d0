"""Training by 1, 2 and 4 processes: `python processes.py FOLDER`. PyTorch is imported once; processes are forked.

Each process writes what it found to FOLDER/SIZE-RANK.json. `python processes.py FOLDER cuda` looks at synchronized
norms alone: two processes on one GPU, which gloo allows and NCCL does not.
"""

import copy
import json
import sys
from itertools import pairwise
from pathlib import Path

import torch
from torch import distributed, multiprocessing, nn

from equipoise.core import Batch, Output, Spec, cards
from equipoise.data import load_task
from equipoise.norms import BatchNorm2d
from equipoise.store import Store
from equipoise.study import How, Listener, run_together, study_of_one
from equipoise.train import ALONE, Fitting, Objective, Processes, Recipe, Run, predict

SIZES = (1, 4, 2)  # the last goes on from a checkpoint of 4
CPU = torch.device("cpu")

# -- losses and weightings, in float64 ---------------------------------------------------------------------------------

N, CLASSES = 14, 5  # 14 over 4: unlike shares
FACTS = {"class_counts": torch.tensor([900, 120, 40, 9, 2]), "num_classes": CLASSES}
DEFERRED = "effective_number(beta=0.999, start=0.5, normalize='batch')"
WEIGHTINGS = (
    "effective_number(beta=0.999)",
    "inverse_frequency",
    "inverse_frequency(power=0.5, normalize='batch')",
    "bias",
    "bias(scaling='running', statistic='product')",
)


class Small(nn.Module):
    """A feature map, its mean and logits of it."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 4, 1), nn.Linear(4, CLASSES)

    def forward(self, x):
        feature_map = self.body(x).relu()
        features = feature_map.mean((2, 3))
        return Output(self.head(features), features, feature_map)


def drawn():
    """The same network and batch at every call and on every process."""
    generator = torch.Generator().manual_seed(1)
    network = Small().double()
    for p in network.parameters():
        p.data.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
    images = torch.randn(N, 3, 3, 3, generator=generator, dtype=torch.float64)
    return network, images, torch.randint(CLASSES, (N,), generator=generator)


def whole_batch(loss, weighting, progress, edges):
    """Loss and gradients by the formula, in one process: what sees a batch sees the parts between `edges`."""
    network, x, y = drawn()
    out = network(x)
    weights = torch.ones(N, dtype=torch.float64)
    if weighting is not None:
        edges = edges if weighting.sees_batch else [0, N]
        parts = [slice(a, b) for a, b in pairwise(edges)]
        seen_by = [copy.deepcopy(weighting) for _ in parts]  # what it remembers is of one process too
        seen = [(y[part], Output(*(values[part] for values in out)), progress) for part in parts]
        weights = torch.cat([weigh(*part) for weigh, part in zip(seen_by, seen, strict=True)])
    total = (weights * loss.per_sample(out.logits, y)).sum()
    total = total / (weights.sum() if weighting is not None and weighting.normalize == "batch" else N)
    total.backward()
    return total.detach(), [p.grad for p in network.parameters()]


def shared_batch(loss, weighting, progress, team):
    """The same by all processes."""
    network, x, y = drawn()
    mine = slice(team.share(N).start, team.share(N).stop)
    gradients = team.gradients(network.parameters(), parts=1)
    gradients.add(Objective(loss, weighting)(network(x[mine]), Batch(x[mine], y[mine]), progress))
    return gradients.take(), [p.grad for p in network.parameters()]


def worst_difference(one, other):
    return max(float((a - b).abs().max()) for a, b in zip([one[0], *one[1]], [other[0], *other[1]], strict=True))


def differences(team):
    """{loss · weighting: the largest difference to one process with the whole batch}, before and after a start."""
    edges, found = [N * rank // team.size for rank in range(team.size + 1)], {}
    losses = [Spec(c.name, tuple(e.items())) for c in cards("loss") for e in c.examples]
    both = [(loss, weighting) for loss in losses for weighting in (None, DEFERRED)]
    both += [(Spec.parse("focal"), weighting) for weighting in WEIGHTINGS]
    for spec, text in both:
        for progress in (0.2, 0.8) if text == DEFERRED else (0.8,):
            loss, weighting = spec.build("loss", **FACTS), text and Spec.parse(text).build("weighting", **FACTS)
            one = whole_batch(loss, copy.deepcopy(weighting), progress, edges)
            together = shared_batch(loss, weighting, progress, team)
            found[f"{spec} · {text} · {progress}"] = worst_difference(one, together)
    return found


# -- runs --------------------------------------------------------------------------------------------------------------

TASK = {"name": "blobs", "imbalance": "long_tailed", "ratio": 10, "n_max": 64}
# group norm has no statistics over the batch; 30 over 4: unlike shares
SMALL = {"model": "cnn_small(width=4)", "norm": "group(groups=2)", "epochs": 4, "batch_size": 30}
RUNS = {
    "weights": {"weighting": "effective_number(beta=0.99, start=0.5, normalize='batch')", "ema": 0.9},
    "sampler": {"sampler": "progressive", "loss": "ldam", "accumulate": 2},
    "penalty": {"penalty": "logit_penalty(beta=0.1)", "sampler": "target_ratio(ratio=2.0)"},
}


def make_run(team, **options):
    recipe = Recipe.make({**SMALL, **options}, TASK)
    return Run(recipe, load_task(**recipe.task.__dict__), CPU, team=team)


def parameters(run):
    return torch.cat([p.detach().flatten() for p in run.evaluated.parameters()])


def trained(team, epochs=2, **options):
    run = make_run(team, **options)
    losses = [run.epoch(number) for number in range(epochs)]
    return run, losses


def runs(team):
    """Losses of two epochs, and the weights then."""
    found = {}
    for name, options in RUNS.items():
        run, losses = trained(team, **options)
        found[name] = [losses, parameters(run).tolist()]
    return found


def norms_see_their_process(team):
    """Batch norm on so many processes is batch norm on a batch in so many parts."""
    options = {"norm": "batch", "batch_size": 32, "augment": "none"}
    one, _ = trained(ALONE, 1, **options, accumulate=team.size)
    together, _ = trained(team, 1, **options)
    norm = next(m for m in together.network.modules() if isinstance(m, nn.BatchNorm2d))
    means = [torch.empty_like(norm.running_mean) for _ in range(team.size)]
    distributed.all_gather(means, norm.running_mean)
    return {
        "weights": float((parameters(one) - parameters(together)).abs().max()),
        "moving averages": max(float((mean - means[0]).abs().max()) for mean in means),
    }


def synchronized(team, device=CPU):
    """How far a synchronized batch norm on shares of a batch is from PyTorch's on the whole one, in float64."""
    x = drawn()[1].to(device)
    mine = slice(team.share(N).start, team.share(N).stop)
    one, ours = nn.BatchNorm2d(3).double().to(device), BatchNorm2d(3, synchronized=True).double().to(device)
    whole, share = x.clone().requires_grad_(), x[mine].clone().requires_grad_()
    direction = torch.randn(x.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(device)
    y = one(whole)
    (y * direction).square().sum().backward()
    y_mine = ours(share)
    (y_mine * direction[mine]).square().sum().backward()
    for p in ours.parameters():
        distributed.all_reduce(p.grad)
    pairs = [(y[mine], y_mine), (whole.grad[mine], share.grad), (one.running_mean, ours.running_mean)]
    pairs += [(one.running_var, ours.running_var), (one.weight.grad, ours.weight.grad), (one.bias.grad, ours.bias.grad)]
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


def synchronized_runs(team):
    """How far weights and moving averages are, after an epoch with synchronized batch norms, from one process's."""
    one, _ = trained(ALONE, 1, norm="batch", augment="none")
    together, _ = trained(team, 1, norm="batch(synchronized=True)", augment="none")
    moving = [[b for b in run.network.buffers() if b.is_floating_point()] for run in (one, together)]
    pairs = [(parameters(one), parameters(together)), *zip(*moving, strict=True)]
    return max(float((a - b).abs().max()) for a, b in pairs)


def predictions(team):
    """How far the outputs by all are from those by one; for fewer images than processes, too."""
    one, together = make_run(ALONE), make_run(team)
    found = []
    for split in (one.task.test.take(torch.arange(7)), one.task.test.take(torch.arange(2))):
        alone, shared = predict(one, split), predict(together, split)
        assert alone.keys() == shared.keys() == {"logits", "features", "labels"}
        found += [float(abs(alone[name] - shared[name]).max()) for name in alone]
    return max(found)


def random_numbers(team):
    """The first numbers of each purpose in an epoch, and again in another process that never saw the epoch before."""
    run, later = make_run(team), make_run(team)
    run.begin_epoch(0)
    run.begin_epoch(1)
    later.team.begin_epoch(later.streams, 1)
    again = {name: float(torch.rand((), generator=g)) for name, g in later.streams.generators.items()}
    return {name: [float(torch.rand((), generator=g)), again[name]] for name, g in run.streams.generators.items()}


def visited(team):
    """The samples of this process in an epoch, batch by batch."""
    run = make_run(team)
    run.begin_epoch(0)
    return run.order.view(run.steps_per_epoch, -1).tolist()


def resumed(team, folder):
    """Weights after 4 epochs; 4 processes do the first two of them, and these the rest."""
    run = make_run(team, **RUNS["weights"])
    fitting = Fitting(run, lambda logits, labels: {}, folder / "resumed")
    began = fitting.epoch
    while fitting.epoch < (2 if team.size == 4 else 4):
        fitting.train_epoch()
        fitting.save()
    return {"began": began, "weights": parameters(run).tolist()}


# -- a recipe from beginning to end ------------------------------------------------------------------------------------

DIGITS = {"name": "digits", "n_max": 50}
ELASTIC = {"model": "cnn_small(width=4)", "epochs": 30, "batch_size": 64, "mix": "mixup", "augment": "crop_flip(pad=1)"}


def corrected(team, folder, lr):
    """Times and errors of a training, its second stage and its correction; done twice: then nothing is left to do."""
    options = {**SMALL, "lr": lr, "epochs": 1, "stage": "crt", "posthoc": "logit_adjust(tau=1.0)"}
    study, store, found = study_of_one(Recipe.make(options, TASK), "corrected"), Store(folder / f"lr {lr}"), []
    for _ in range(2):
        run_together(study, store, How(CPU, team=team), Listener())
        distributed.barrier()
        found.append([(record.ended, record.error) for record in store.records()])
    return found


def uninterrupted(team, folder):
    """What two processes make of a recipe that nobody stops: its curves."""
    study = study_of_one(Recipe.make(ELASTIC, DIGITS), "elastic")
    store = Store(folder / "uninterrupted")
    run_together(study, store, How(CPU, team=team), Listener())
    distributed.barrier()
    (record,) = store.records()
    return {"curves": record.curves, "notes": record.notes}


def alone(folder):
    """What one process comes to, without a process group."""
    torch.set_num_threads(1)
    four_epochs, _ = trained(ALONE, 4, **RUNS["weights"])
    (folder / "alone.json").write_text(json.dumps({"runs": runs(ALONE), "resumed": parameters(four_epochs).tolist()}))


def met(rank, size, folder):
    """The team of this process, once all are there."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet-{size}", rank=rank, world_size=size)
    return Processes()


def left(found, folder, team):
    """Write what was found, and go when all are done."""
    (folder / f"{team.size}-{team.rank}.json").write_text(json.dumps(found))
    distributed.barrier()
    distributed.destroy_process_group()


def work_on_one_gpu(rank, size, folder):
    team = met(rank, size, folder)
    left({"synchronized": synchronized(team, torch.device("cuda"))}, folder, team)


def work(rank, size, folder):
    team = met(rank, size, folder)
    torch.set_default_dtype(torch.float64)  # of class weights too
    found = {"differences": differences(team), "synchronized": synchronized(team)}
    torch.set_default_dtype(torch.float32)
    found |= {
        "runs": runs(team),
        "norms": norms_see_their_process(team),
        "predictions": predictions(team),
        "synchronized_runs": synchronized_runs(team),
        "random_numbers": random_numbers(team),
        "visited": visited(team),
    }
    if size > 1:
        found["resumed"] = resumed(team, folder)
    if size == 2:
        found["uninterrupted"] = uninterrupted(team, folder)
        found["corrected"], found["diverged"] = corrected(team, folder, 0.1), corrected(team, folder, 1e30)
    left(found, folder, team)


def main(folder):
    for task, options in ((TASK, SMALL), (DIGITS, ELASTIC)):  # read and imported once for all, before any gradient
        load_task(**Recipe.make(options, task).task.__dict__)
    multiprocessing.start_processes(lambda rank: alone(folder), nprocs=1, start_method="fork")
    for size in SIZES:
        multiprocessing.start_processes(work, (size, folder), nprocs=size, start_method="fork")


if __name__ == "__main__":
    if sys.argv[2:] == ["cuda"]:
        multiprocessing.start_processes(work_on_one_gpu, (2, Path(sys.argv[1])), nprocs=2, start_method="spawn")
    else:
        main(Path(sys.argv[1]))
