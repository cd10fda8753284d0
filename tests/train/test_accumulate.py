"""A batch in parts is the batch as a whole, wherever the method is defined over samples."""

import pytest
import torch
from torch import nn

from equipoise.core import EquipoiseError
from equipoise.data import load_task
from equipoise.train import Mistakes, Plan, Recipe, Run
from equipoise.train.accumulate import Gradients
from equipoise.train.objective import Terms

TASK = {"name": "blobs", "imbalance": "long_tailed", "ratio": 10, "n_max": 64}
# group norm has no statistics over the batch
SMALL = {
    "model": "cnn_small(width=4)",
    "norm": "group(groups=2)",
    "augment": "crop_flip",
    "epochs": 3,
    "batch_size": 16,
}


def make_run(**options):
    recipe = Recipe.make({**SMALL, **options}, TASK)
    return Run(recipe, load_task(**recipe.task.__dict__), torch.device("cpu"))


def after_one_epoch(**options):
    run = make_run(**options)
    loss = run.epoch(0)
    return loss, torch.cat([p.detach().flatten() for p in run.network.parameters()])


def test_by_hand():
    w = nn.Parameter(torch.tensor([2.0]))
    gradients = Gradients([w], parts=2)
    # a loss of 3w from a part that counts 1, and of 7w from one that counts 3: (3·1 + 7·3) / 4 = 6
    gradients.add(Terms((3 * w).sum(), torch.zeros(1), torch.tensor(1.0)))
    gradients.add(Terms((7 * w).sum(), torch.zeros(1), torch.tensor(3.0)))
    assert gradients.take().item() == 12.0 and w.grad.item() == 6.0


@pytest.mark.parametrize("parts", [2, 8, 16])
@pytest.mark.parametrize(
    "method",
    [
        {},
        {"loss": "ldam"},
        {"loss": "focal", "penalty": "logit_penalty(beta=0.1)"},
        {"weighting": "effective_number(beta=0.99)"},
        {"weighting": "effective_number(beta=0.99, normalize='batch')"},
        {"weighting": "inverse_frequency(normalize='batch')", "loss": "sigmoid", "ema": 0.9},
    ],
    ids=["plain", "ldam", "penalty", "classes", "batch", "sigmoid"],
)
def test_parts_make_the_step_of_the_whole_batch(method, parts):
    whole, in_parts = after_one_epoch(**method), after_one_epoch(**method, accumulate=parts)
    assert in_parts[0] == pytest.approx(whole[0], rel=1e-5)
    torch.testing.assert_close(in_parts[1], whole[1], atol=2e-5, rtol=1e-4)


def test_one_batch_of_weights_differs_from_the_mean_of_its_parts():
    """Otherwise the case above would show nothing: parts have unlike sums of weights."""
    method = {"weighting": "effective_number(beta=0.99, normalize='batch')"}
    run = make_run(**method, accumulate=16)
    run.begin_epoch(0)
    parts = [run.terms(batch) for batch in run.parts()]
    counts = torch.stack([terms.weight for terms in parts])
    assert counts.max() > 1.5 * counts.min()


def test_norms_see_one_part_at_a_time():
    run = make_run(norm="batch", accumulate=2)
    norm = next(m for m in run.network.modules() if isinstance(m, nn.BatchNorm2d))
    seen = []
    norm.register_forward_pre_hook(lambda module, args: seen.append(len(args[0])))
    run.begin_epoch(0)
    run.step()
    assert seen == [8, 8] and int(norm.num_batches_tracked) == 2 and int(run.done) == 1


def test_less_data_than_a_batch_still_has_equal_parts():
    recipe = Recipe.make({**SMALL, "batch_size": 128, "accumulate": 8}, {**TASK, "n_max": 20})
    run = Run(recipe, task := load_task(**recipe.task.__dict__), torch.device("cpu"))
    assert run.batch_size == len(task.train) // 8 * 8 and run.part_size == len(task.train) // 8
    run.epoch(0)


def test_keys_of_before_stay():
    recipe = Recipe.make({"loss": "focal", "epochs": 30, "lr": 1}, {"name": "digits"})
    assert recipe.key == "94a7047061172722"
    assert Recipe.make({"loss": "focal", "epochs": 30, "lr": 1, "accumulate": 2}, {"name": "digits"}).key != recipe.key


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"accumulate": 3}, "3 does not divide 16"),
        ({"accumulate": 0}, "accumulate must be a whole number"),
        ({"accumulate": 2, "procedure": "bbn"}, "needs the plain step"),
        (
            {"accumulate": 2, "penalty": "logit_penalty", "weighting": "effective_number(normalize='batch')"},
            "cannot add a penalty",
        ),
    ],
)
def test_what_cannot_be_accumulated_is_refused(options, said):
    with pytest.raises(Mistakes, match=said):
        Recipe.make({**SMALL, **options}, TASK)


def test_more_parts_than_images_are_refused():
    with pytest.raises(EquipoiseError, match="4 training images cannot be accumulated over 8 parts"):
        Plan(batch_size=16, accumulate=8).check_length(4)
