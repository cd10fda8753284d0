"""Other people's training loops, run as programs of two processes: `python loops.py LOOP FOLDER`.

Each process writes to FOLDER/RANK.json which samples it visited: {sampler: [epoch: [index, …]]}.
"""

import gc
import importlib.util
import json
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from equipoise.imbalance import ClassBalancedSampler, ProgressiveSampler, UniformSampler

N, EPOCHS, BATCH = 568, 3, 32
LABELS = (torch.arange(N) % 100 // 10).square() // 9  # ten tens, shared by eight classes
SAMPLERS = {
    "uniform": UniformSampler,
    "class_balanced": ClassBalancedSampler,
    "progressive": lambda labels, **options: ProgressiveSampler(labels, epochs=EPOCHS, **options),
}
# what the examples in the documents are run on
EXAMPLES = Path(__file__).parents[3] / "examples" / "distributed"
DATA = torch.linspace(-1, 1, 600).view(200, 3), torch.tensor([0] * 150 + [1] * 40 + [2] * 10)


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.train


def stopped_and_resumed(train, *where):
    """Epochs of an example that is stopped in the first of them and gone on with: [before, after]."""
    state, before = train(*where, *DATA, stop_at=5)
    _, after = train(*where, *DATA, checkpoint=state)
    return [before[0], *after.values()]


def loader(name, **options):
    """The data are their own indices."""
    return DataLoader(TensorDataset(torch.arange(N)), BATCH, sampler=SAMPLERS[name](LABELS, **options))


def ddp():
    """Plain PyTorch, as torchrun starts it."""
    torch.distributed.init_process_group("gloo")
    visited = {}
    for name in SAMPLERS:
        visited[name], batches = [], loader(name)
        for epoch in range(EPOCHS):
            batches.sampler.set_epoch(epoch)
            visited[name].append(torch.cat([index for (index,) in batches]).tolist())
    visited["example"] = stopped_and_resumed(example("plain_ddp"))
    rank = torch.distributed.get_rank()
    gc.collect()  # networks of DDP that outlive the group now and then end the process with an error (gloo)
    torch.distributed.destroy_process_group()
    return rank, visited


def lightning(folder):
    """The loader is made before there is a process group, and the trainer is told nothing about it."""
    from lightning.pytorch import LightningModule, Trainer

    class Noting(LightningModule):
        def __init__(self):
            super().__init__()
            self.layer, self.visited = nn.Linear(1, 1), []

        def on_train_epoch_start(self):
            self.visited.append([])

        def training_step(self, batch, number):
            self.visited[-1] += batch[0].tolist()
            return self.layer(batch[0][:, None] / N).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.0)

    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}

    def fit(name, epochs, resumed=None, **options):
        machine = {"accelerator": "cpu", "devices": 2, "strategy": "ddp"}
        trainer = Trainer(**machine, max_epochs=epochs, default_root_dir=folder, logger=False, **quiet)
        network, batches = Noting(), loader(name, **options)
        trainer.fit(network, batches, ckpt_path=resumed)
        return trainer, network.visited

    visited = {}
    for name in SAMPLERS:
        trainer, visited[name] = fit(name, EPOCHS)
    trainer, first = fit("uniform", EPOCHS - 1)
    trainer.save_checkpoint(folder / "stopped.ckpt")
    trainer, rest = fit("uniform", EPOCHS, resumed=folder / "stopped.ckpt")
    visited["resumed"] = first + rest
    told = {"rank": trainer.global_rank, "num_replicas": trainer.world_size}
    trainer, visited["told"] = fit("uniform", EPOCHS, **told)
    visited["example"] = example("with_lightning")(*DATA, default_root_dir=folder, **quiet)
    return trainer.global_rank, visited


def accelerate():
    """Whole batches for each process, batches split, batches sent out by the first process; stopped and resumed."""
    from accelerate import Accelerator, DataLoaderConfiguration, skip_first_batches

    def epochs(batches, numbers=range(EPOCHS)):
        return [torch.cat([index for (index,) in batches]).tolist() for _ in numbers]

    visited = {}
    accelerator = Accelerator(cpu=True)
    for name in SAMPLERS:
        visited[name] = epochs(accelerator.prepare(loader(name)))
    resumed = accelerator.prepare(loader("uniform"))
    resumed.set_epoch(1)
    visited["resumed"] = epochs(skip_first_batches(resumed, 4), [1])
    resumed.set_epoch(2)
    visited["resumed"] += epochs(resumed, [2])
    for way in ("split_batches", "dispatch_batches", "use_seedable_sampler"):
        accelerator.dataloader_config = DataLoaderConfiguration(**{way: True})
        visited[way] = epochs(accelerator.prepare(loader("uniform")))
    told = {"rank": accelerator.process_index, "num_replicas": accelerator.num_processes}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        visited["told"] = epochs(loader("uniform", **told))
    visited["warned"] = [str(warning.message) for warning in caught]
    accelerator.dataloader_config = DataLoaderConfiguration()
    visited["example"] = stopped_and_resumed(example("with_accelerate"), accelerator)
    gc.collect()  # as above
    accelerator.end_training()
    return accelerator.process_index, visited


if __name__ == "__main__":
    loop, folder = sys.argv[1], Path(sys.argv[2])
    rank, visited = {"ddp": ddp, "accelerate": accelerate}[loop]() if loop != "lightning" else lightning(folder)
    (folder / f"{rank}.json").write_text(json.dumps(visited))
