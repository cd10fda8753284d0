"""Schedule, decay, objective, average, loop: against references written from their formulas."""

import math

import numpy as np
import pytest
import torch

from equipoise.analysis import evaluate
from equipoise.core import Batch, Output, Spec
from equipoise.data import load_task
from equipoise.imbalance import EffectiveNumber
from equipoise.losses import CrossEntropyLoss, FocalLoss
from equipoise.models import create_model
from equipoise.norms import decay_groups
from equipoise.train import Diverged, Mistakes, Objective, Plan, Recipe, Run, Stopped, fit, predict
from equipoise.train.ema import Average
from equipoise.train.schedule import learning_rates
from equipoise.train.streams import Streams

CPU = torch.device("cpu")
TASK = {"name": "blobs", "imbalance": "long_tailed", "ratio": 10, "n_max": 64}
SMALL = {"model": "cnn_small(width=4)", "epochs": 6, "batch_size": 16}


def metrics(logits, labels):
    return evaluate(logits, labels, np.array([64, 20, 6]))


def make_run(options=(), seed=0):
    recipe = Recipe.make({**SMALL, **dict(options)}, TASK, seed)
    return Run(recipe, load_task(**recipe.task.__dict__, seed=seed), CPU)


# -- recipe ------------------------------------------------------------------------------------------------------------


def test_equal_recipes_have_equal_keys_however_written():
    a = Recipe.make({"loss": "focal", "epochs": 30, "lr": 1}, {"name": "digits"})
    b = Recipe.make({"loss": "focal( gamma = 2 )", "epochs": 30, "lr": 1.0, "norm": "batch"}, {"name": "digits"})
    assert a == b and a.key == b.key
    changed = [{"loss": "focal(gamma=1)"}, {"epochs": 31}, {"weight_decay": 0.0}, {"mix": "mfw"}]
    keys = {Recipe.make({"loss": "focal", "epochs": 30, "lr": 1} | c, {"name": "digits"}).key for c in changed}
    keys |= {a.key, Recipe.make({"loss": "focal", "epochs": 30, "lr": 1}, {"name": "digits"}, seed=1).key}
    assert len(keys) == len(changed) + 2


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, "6dd60f48cbf04b0a"),
        ({"head": "cosine(tau=0.1, bias=False)"}, "f02234e66e463fb1"),
        ({"loss": "sigmoid"}, "cf3879e04e84fd43"),
        ({"head": "dropout(keep=0.65)"}, "5ec7421b3737b7de"),
        ({"loss": "ldam"}, "b7ff74ab7e81fe33"),
        ({"mix": "mixup"}, "f6833c3c18af30a5"),
        ({"mix": "manifold_mixup(alpha=2.0)"}, "18308096a3985360"),
    ],
)
def test_parameters_that_came_later_leave_old_keys_alone(options, key):
    assert Recipe.make(options).key == key  # as they were before the parameters came


def test_parameters_that_came_later_count_where_they_are_set():
    assert Recipe.make({"mix": "mixup(per_batch=True)"}).key != Recipe.make({"mix": "mixup"}).key


def test_a_recipe_survives_plain_data():
    recipe = Recipe.make({"mix": "mfw", "weighting": "effective_number(start=0.8)", "schedule": "steps"}, TASK, seed=3)
    assert Recipe.from_dict(recipe.to_dict()) == recipe


def test_companions_serve_where_the_user_has_not_chosen():
    assert Recipe.make({"loss": "ldam"}, TASK).head.startswith("cosine(tau=1.0")
    assert Recipe.make({"loss": "ldam", "head": "linear"}, TASK).head.startswith("linear")
    assert Recipe.make({}, {"name": "digits"}).plan.batch_size == 32
    assert Recipe.make({}, {"name": "cifar10"}).augment == "crop_flip(pad=4, flip=True)"


def test_all_mistakes_are_told_at_once():
    with pytest.raises(Mistakes) as caught:
        Recipe.make(
            {"loss": "focl", "epochs": 0, "mxi": "mfw", "weighting": "effective_number(beta=2)"}, {"ratio": 0.5}
        )
    text = str(caught.value)
    for part in ("'focl'", "epochs must be", "'mxi'", "beta", "ratio (largest class over smallest) must be at least 1"):
        assert part in text
    with pytest.raises(Mistakes, match="has no site 'stage9'"):
        Recipe.make({"mix": "mfw(site='stage9')"}, TASK)


@pytest.mark.parametrize(
    "bad",
    [{"lr": 0}, {"momentum": 1.0}, {"warmup": 30, "epochs": 30}, {"ema": 1.5}, {"precision": "half"}, {"epochs": 2.5},
     {"nesterov": 1}, {"nesterov": True, "momentum": 0.0},
     {"affine_towards": 2}, {"schedule": "cosin"}, {"batch_size": True}, {"lr": "fast"}],
)  # fmt: skip
def test_a_bad_plan_is_refused(bad):
    with pytest.raises(ValueError):
        Plan(**bad)


# -- schedule ----------------------------------------------------------------------------------------------------------


def test_warm_up_then_cosine():
    rates = learning_rates(Spec.parse("cosine").build("schedule", epochs=10), 0.1, 10, 2, 4)
    expected = [
        0.1 * min(1, (s + 1) / 8) * 0.5 * (1 + math.cos(math.pi * s / 40)) for s in range(40)
    ]  # 4 steps an epoch, 2 epochs of warm-up
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    assert rates[0] > 0


def test_steps_and_exponential():
    steps = Spec.parse("steps(at=(0.8, 0.9), factor=0.01)").build("schedule", epochs=200)
    assert [steps(e) for e in (0, 159.9, 160, 179.9, 180)] == pytest.approx([1, 1, 0.01, 0.01, 0.0001])
    exponential = Spec.parse("exponential(factor=0.5)").build("schedule", epochs=200)
    assert exponential(3) == 0.125


def test_exponential_decay_begins_after_the_warm_up():
    """The loss functions study on ImageNet: linearly to 1.6 in ten epochs, then 0.975 of it every epoch."""
    run = make_run({"schedule": "exponential(factor=0.975)", "lr": 1.6, "warmup": 10, "epochs": 30})
    rates = run.rates.reshape(30, -1)
    assert rates.max().item() == pytest.approx(1.6)
    assert rates[10, 0].item() == pytest.approx(1.6)
    assert rates[15, 0].item() == pytest.approx(1.6 * 0.975**5)


# -- decay -------------------------------------------------------------------------------------------------------------


def test_decay_groups_cover_every_parameter_once():
    network = create_model("cnn_small(width=4)", 3, head="linear(prior='others')", in_channels=1)
    groups = decay_groups(network, 0.1, affine=False, final=0.5)
    strength = {id(p): g["weight_decay"] for g in groups for p in g["params"]}
    named = dict(network.named_parameters())
    assert len(strength) == len(named) == sum(len(g["params"]) for g in groups)
    assert strength[id(network.head.bias)] == 0  # a prior is not decayed
    assert strength[id(network.head.weight)] == pytest.approx(0.6)
    assert all(strength[id(p)] == 0 for n, p in named.items() if p.dim() == 1)
    assert all(strength[id(p)] == 0.1 for n, p in named.items() if p.dim() == 4)
    everything = decay_groups(create_model("cnn_small(width=4)", 3), 0.1)
    assert [g["weight_decay"] for g in everything] == [0.1]


# -- objective ---------------------------------------------------------------------------------------------------------


def test_objective_against_the_formula():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 3))
    target, other, lam = np.array([0, 1, 2, 0, 1]), np.array([2, 1, 0, 0, 0]), rng.random(5)
    weights = np.array([0.5, 1.0, 1.5])

    def ce(y):
        return np.array(
            [-math.log(math.exp(z[c]) / sum(math.exp(v) for v in z)) for z, c in zip(logits, y, strict=True)]
        )

    expected = np.mean(lam * weights[target] * ce(target) + (1 - lam) * weights[other] * ce(other))

    class Fixed(torch.nn.Module):
        normalize = "classes"

        def forward(self, target, out, progress):
            return torch.tensor(weights)[target]

    batch = Batch(torch.zeros(5), torch.tensor(target), torch.tensor(other), torch.tensor(lam))
    terms = Objective(CrossEntropyLoss(), Fixed())(Output(torch.tensor(logits)), batch, 0.0)
    assert terms.total.item() == pytest.approx(expected, rel=1e-12)
    assert terms.per_sample.shape == (5,)


def test_weights_normalised_over_the_batch_are_a_weighted_mean():
    """As `torch.nn.CrossEntropyLoss(weight=…)` reduces, which deferred re-weighting uses."""
    logits, target = torch.randn(6, 3, dtype=torch.float64), torch.tensor([0, 0, 0, 1, 2, 0])
    weighting = EffectiveNumber([900, 90, 9], beta=0.999, normalize="batch")
    weights = weighting.class_weights.double()
    expected = torch.nn.functional.cross_entropy(logits, target, weights)
    batch = Batch(torch.zeros(6), target)
    objective = Objective(CrossEntropyLoss(), weighting)
    torch.testing.assert_close(objective(Output(logits), batch).total, expected, rtol=1e-6, atol=0)
    assert (
        Objective(CrossEntropyLoss(), EffectiveNumber([900, 90, 9], beta=0.999))(Output(logits), batch).total
        != expected
    )


def test_with_two_labels_the_mixed_weights_divide():
    rng = np.random.default_rng(1)
    logits, lam = rng.normal(size=(4, 2)), rng.random(4)
    target, other = np.array([0, 1, 0, 0]), np.array([1, 1, 0, 1])
    weighting = EffectiveNumber([50, 5], beta=0.99, normalize="batch")
    w = weighting.class_weights.double().numpy()
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    upper = lower = 0.0
    for i in range(4):
        for share, label in ((lam[i], target[i]), (1 - lam[i], other[i])):
            upper += share * w[label] * -log_p[i, label]
            lower += share * w[label]
    batch = Batch(torch.zeros(4), torch.tensor(target), torch.tensor(other), torch.tensor(lam))
    total = Objective(CrossEntropyLoss(), weighting)(Output(torch.tensor(logits)), batch).total
    assert total.item() == pytest.approx(upper / lower, rel=1e-6)


def test_deferred_weights_start_where_they_should():
    out, batch = Output(torch.randn(4, 2)), Batch(torch.zeros(4), torch.tensor([0, 0, 1, 1]))
    objective = Objective(FocalLoss(), EffectiveNumber([100, 1], beta=0.99, start=0.8))
    plain = Objective(FocalLoss())(out, batch).total
    assert torch.equal(objective(out, batch, torch.tensor(0.79)).total, plain)
    assert not torch.equal(objective(out, batch, torch.tensor(0.8)).total, plain)


# -- the loop ----------------------------------------------------------------------------------------------------------


def test_a_step_is_sgd_with_momentum_and_decay():
    """Two steps by hand: v ← m·v + g + wd·w, w ← w − lr·v."""
    run = make_run({"momentum": 0.9, "weight_decay": 0.1, "lr": 0.5, "augment": "none"})
    run.begin_epoch(0)
    weight, velocity = run.network.head.weight.detach().double().clone(), None
    captured = []
    run.network.head.weight.register_hook(lambda g: captured.append(g.double().clone()))
    for step in range(2):
        run.step()
        grad = captured[step] + 0.1 * weight
        velocity = grad if velocity is None else 0.9 * velocity + grad
        weight = weight - run.rates[step].double() * velocity
        torch.testing.assert_close(run.network.head.weight.detach().double(), weight, rtol=1e-5, atol=1e-7)


def test_gamma_decays_towards_one():
    """v ← g + wd·(γ − 1), γ ← γ − lr·v, by hand for one step; β and the weights decay to 0."""
    run = make_run({"momentum": 0.0, "weight_decay": 0.5, "lr": 0.5, "affine_towards": 1})
    norm = run.network.stem[1]
    with torch.no_grad():
        norm.weight.fill_(3.0)
        norm.bias.fill_(2.0)
    grads = {}
    norm.weight.register_hook(lambda g: grads.update(weight=g.double().clone()))
    norm.bias.register_hook(lambda g: grads.update(bias=g.double().clone()))
    run.begin_epoch(0)
    run.step()
    rate = run.rates[0].double()
    expected = 3.0 - rate * (grads["weight"] + 0.5 * (3.0 - 1.0))
    torch.testing.assert_close(norm.weight.detach().double(), expected, rtol=1e-5, atol=1e-6)
    expected = 2.0 - rate * (grads["bias"] + 0.5 * 2.0)
    torch.testing.assert_close(norm.bias.detach().double(), expected, rtol=1e-5, atol=1e-6)


def test_training_learns_and_repeats_itself_exactly():
    first, second, other = (make_run({"epochs": 15}, seed) for seed in (0, 0, 1))
    curves = fit(first, evaluate=metrics)
    assert curves == fit(second, evaluate=metrics)
    assert curves != fit(other, evaluate=metrics)
    assert curves["train_loss"][-1] < curves["train_loss"][0]
    test = predict(first, first.task.test)
    assert metrics(test["logits"], test["labels"])["balanced_accuracy"] > 0.5
    assert test["features"].dtype == np.float16 and len(test["features"]) == len(test["labels"])


@pytest.mark.parametrize("procedure", [None, "mutual"])
def test_a_mixing_stops_when_it_is_to(procedure):
    run, seen = make_run({"mix": "cutmix(stop=0.5)", "epochs": 4, "procedure": procedure}), []
    run.mix.register_forward_hook(lambda mix, args, mixed: seen.append(bool((mixed.label_lam < 1).any())))
    for number in range(4):
        run.epoch(number)
    steps = len(seen) // 4
    assert seen == [True] * (2 * steps) + [False] * (2 * steps)


def test_adding_a_mixing_changes_neither_weights_nor_order():
    plain, mixed = make_run(), make_run({"mix": "mfw"})
    for a, b in zip(plain.network.parameters(), mixed.network.parameters(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(plain.sampler.order(plain.streams["order"]), mixed.sampler.order(mixed.streams["order"]))


def test_streams_differ_by_purpose_and_seed():
    draws = {
        (seed, purpose): torch.rand(4, generator=Streams(seed, CPU)[purpose])
        for seed in (0, 1)
        for purpose in ("order", "augment", "mix", "noise")
    }
    assert len({tuple(v.tolist()) for v in draws.values()}) == 8


@pytest.mark.parametrize(
    "options",
    [{}, {"mix": "mfw", "weighting": "effective_number(start=0.5)", "ema": 0.9, "nesterov": True},
     {"loss": "ldam", "augment": "crop_flip(pad=1)"}, {"head": "dropout(keep=0.5)"}, {"mix": "mixup"}],
)  # fmt: skip
def test_a_run_that_is_stopped_ends_with_the_same_numbers(options, tmp_path):
    whole = make_run(options)
    expected = fit(whole, evaluate=metrics)
    stops = iter([False, True, False, True])  # after the second and after the fourth epoch
    for _ in range(2):
        with pytest.raises(Stopped):
            fit(make_run(options), evaluate=metrics, folder=tmp_path, stop=lambda: next(stops, False))
        torch.manual_seed(99)  # a new process has another global state
    last = make_run(options)
    assert fit(last, evaluate=metrics, folder=tmp_path) == expected
    for a, b in zip(whole.evaluated.state_dict().values(), last.evaluated.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_a_run_that_turns_nan_says_at_which_step():
    run = make_run()
    original, calls = run.objective.loss.per_sample, []

    def poisoned(logits, target):
        calls.append(0)
        return original(logits, target) * (float("nan") if len(calls) == 8 else 1.0)

    run.objective.loss.per_sample = poisoned
    with pytest.raises(Diverged, match="at step 7") as caught:
        fit(run, evaluate=metrics)
    assert caught.value.step == 7


def test_the_average_follows_the_formula():
    network = create_model("cnn_small(width=4)", 3, in_channels=1)
    average = Average(network, 0.75)
    start = network.head.weight.detach().clone()
    with torch.no_grad():
        network.head.weight += 1
    average.update()
    torch.testing.assert_close(average.network.head.weight, start + 0.25)
    assert average.network.stem[1].num_batches_tracked == network.stem[1].num_batches_tracked


def test_no_validation_data_is_allowed():
    recipe = Recipe.make(SMALL, {**TASK, "valid": 0})
    run = Run(recipe, load_task(**recipe.task.__dict__), CPU)
    assert list(fit(run, evaluate=metrics)) == ["train_loss"]
    assert len(predict(run, run.task.valid)["labels"]) == 0


def test_a_batch_larger_than_the_data_is_the_data():
    run = make_run({"batch_size": 5000})
    assert run.batch_size == len(run.task.train) and run.steps_per_epoch == 1
    fit(run, evaluate=metrics)
