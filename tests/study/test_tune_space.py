"""Search spaces: what a method brings along, what a study writes, and the recipes that points stand for."""

from dataclasses import asdict

import pytest

from equipoise.core import EquipoiseError, Spec, cards
from equipoise.study import Study, Tuning
from equipoise.study.tune.axis import read_axis
from equipoise.study.tune.prepare import check, spaces_of
from equipoise.study.tune.space import flat, options_of, placed, space_of, value_of
from equipoise.train import DIALS, Mistakes, Plan, Recipe

SPACES = [entry for entry in cards() if entry.space]


def recipe(**options):
    return Recipe.make({"model": "cnn_small", **options}, {"name": "blobs"})


def test_every_method_has_lr_and_weight_decay():
    space = space_of(recipe(lr=0.2, weight_decay=1e-3))
    assert list(space.axes) == ["lr", "weight_decay"]
    assert space.axes["lr"].values == (0.0632, 0.2, 0.632) and space.axes["lr"].scale == "log"
    assert space.start == {"lr": 0.2, "weight_decay": 1e-3} and space.at(space.start) == space.recipe
    none = space_of(recipe(weight_decay=0.0)).axes["weight_decay"]
    assert none.nearest(0.0) == none.values[0] and Plan().weight_decay in none.values


def test_a_method_brings_its_own_dials():
    space = space_of(recipe(weighting="effective_number(beta=0.95)", mix="mfw(alpha=1.0)"))
    assert list(space.axes)[2:] == ["weighting.beta", "mix.alpha"]
    assert space.axes["weighting.beta"].values == (0.9, 0.95, 0.99, 0.999, 0.9999)  # with what the recipe says
    assert space.at(space.start) == space.recipe  # so the first trial is the recipe as it was written


def test_a_companion_belongs_to_the_method_that_brought_it():
    assert not any(dial.startswith("head") for dial in space_of(recipe(loss="ldam")).axes)
    assert "head.tau" in space_of(recipe(head="cosine(tau=0.05)")).axes


def test_what_a_method_finds_by_itself_is_not_searched():
    assert "posthoc.tau" in space_of(recipe(posthoc="logit_adjust(tau=1.0)")).axes
    assert "posthoc.tau" not in space_of(recipe(posthoc="logit_adjust(tau=None)")).axes


def test_a_study_may_write_it_differently():
    base = recipe(loss="focal(gamma=1.0)", ema=0.99)
    common = {"lr": [0.01, 0.1], "weighting.beta": [0.9, 0.99], "ema": [0.9, 0.99]}
    space = space_of(base, common, {"loss.gamma": {"low": 0, "high": 4, "scale": "linear"}, "weight_decay": [5e-4]})
    assert space.axes["lr"].values == (0.01, 0.1) and space.axes["lr"].scale == "log"  # the scale of the dial
    assert space.axes["loss.gamma"].values == (0.0, 2.0, 4.0)
    assert "weighting.beta" not in space.axes  # of what all methods share, it takes what it has
    assert "weight_decay" not in space.axes and space.recipe.plan.weight_decay == 5e-4  # one value is no search
    assert space.axes["ema"].values == (0.9, 0.99)
    made = space.at({"lr": 0.05, "loss.gamma": 3.0})
    assert made.loss == "focal(gamma=3.0)" and made.plan.lr == 0.05 and made.plan.weight_decay == 5e-4


def test_the_product_of_rate_and_decay_may_be_searched_instead_of_the_decay():
    base = recipe(lr=10**-1.25, weight_decay=10**-2.5)
    space = space_of(base, {"lr": [0.01, 0.1], "lr*weight_decay": [1e-4, 10**-3.75, 1e-3]})
    assert list(space.axes) == ["lr", "lr*weight_decay"]
    assert value_of(base, "lr*weight_decay") == pytest.approx(10**-3.75)
    for lr in (0.01, 0.1):
        for lam in (1e-4, 1e-3):
            made = space.at({"lr": lr, "lr*weight_decay": lam}).plan
            assert made.lr == lr and made.weight_decay == pytest.approx(lam / lr, rel=1e-12)
    whole = space_of(base, {"lr*weight_decay": {"low": 1e-5, "high": 1e-3}})
    assert whole.axes["lr*weight_decay"].scale == "log"
    as_written = {"lr": base.plan.lr, "lr*weight_decay": base.plan.lr * base.plan.weight_decay}
    assert space.at(as_written) == base  # to the last digit


def test_one_product_gives_every_rate_its_decay():
    space = space_of(recipe(lr=0.1, weight_decay=1e-3), {"lr": [0.01, 0.1], "lr*weight_decay": [1e-4]})
    assert space.at({"lr": 0.01, "lr*weight_decay": 1e-4}).plan.weight_decay == pytest.approx(1e-2)
    assert space.start == {"lr": 0.1, "lr*weight_decay": 1e-4}
    with pytest.raises(Mistakes, match="only one of the two can be searched"):
        space_of(recipe(), {"lr*weight_decay": [1e-4], "weight_decay": [1e-3]})


def test_dotted_names_are_tables_to_toml():
    nested = {"lr": {"low": 0.1, "high": 1.0}, "loss": {"gamma": [1.0]}, "mix.alpha": [2.0]}
    assert flat(nested) == {"lr": {"low": 0.1, "high": 1.0}, "loss.gamma": [1.0], "mix.alpha": [2.0]}


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"lrr": [0.1]}, "lrr: no dial is named 'lrr'. Did you mean 'lr'"),
        ({"epochs": [10, 20]}, "epochs is not searched"),
        ({"loss": ["focal"]}, "say which parameter: loss.NAME"),
        ({"los.gamma": [1.0]}, "no dial is named 'los'. Did you mean 'loss'"),
        ({"loss.gama": [1.0]}, "has no parameter 'gama'. Did you mean 'gamma'"),
        ({"mix.alpha": [1.0]}, "this method has no mix"),
        ({"lr": [0.0, 0.1]}, "above 0"),
        ({"loss.gamma": 2.0}, "must be a list"),
    ],
)
def test_mistakes_are_told_with_the_dial(own, message):
    with pytest.raises(Mistakes, match=message):
        space_of(recipe(loss="focal"), None, own)


def test_all_mistakes_at_once():
    with pytest.raises(Mistakes) as caught:
        space_of(recipe(), None, {"lrr": [0.1], "mix.alpha": [1.0]})
    assert len(caught.value.lines) == 2


def test_a_value_that_a_method_refuses_is_refused():
    with pytest.raises(EquipoiseError, match="gamma must be at least 0"):
        placed(recipe(loss="focal"), {"loss.gamma": -1.0})


@pytest.mark.parametrize("options", [{}, {"loss": "ldam", "ema": 0.9}, {"mix": "mfw", "posthoc": "temperature"}])
def test_a_recipe_survives_the_way_through_its_options(options):
    made = recipe(**options)
    assert Recipe.make(options_of(made), asdict(made.task)) == made
    assert placed(made, {}) == made
    assert value_of(placed(made, {"momentum": 0.5}), "momentum") == 0.5


@pytest.mark.parametrize("entry", SPACES, ids=lambda entry: entry.name)
def test_every_space_names_parameters_and_values_that_its_method_takes(entry):
    assert entry.kind in DIALS
    for name, given in entry.space.items():
        parameter = entry.parameters[name]
        axis = read_axis(given, floats=isinstance(parameter.default, float))
        assert len(axis.values) >= 2
        ends = axis.reach if axis.ordered else ()
        for value in (*axis.values, *ends):
            recipe(**{entry.kind: str(Spec(entry.name, ((name, value),)))})


def test_the_dials_of_the_papers_have_spaces():
    dials = {f"{entry.name}.{name}" for entry in SPACES for name in entry.space}
    assert {"effective_number.beta", "focal.gamma", "cosine.tau", "mfw.alpha", "ghost.ghost_size"} <= dials


def test_what_no_search_can_go_through_is_refused():
    with pytest.raises(EquipoiseError, match="values must be at most 1,000, not 1,001"):
        read_axis(list(range(1001)))
    for wrong in ({"lr": 3e38}, {"weight_decay": 1e-45}):  # their neighbours still are numbers
        assert space_of(Recipe.make({"model": "cnn_small", **wrong}, {"name": "blobs"})).axes
    with pytest.raises(ValueError, match="trials must be at most 10,000"):
        Tuning(trials=10**9)


def test_a_grid_that_cannot_be_put_in_order_is_refused():
    plain = {"baseline": "a", "task": {"name": "blobs"}, "base": {"model": "cnn_small"}, "methods": {"a": {}, "b": {}}}
    dials = ("lr", "weight_decay", "momentum")
    plain["tune"] = {"space": {dial: [0.1 + i / 1000 for i in range(100)] for dial in dials}}
    study = Study.from_dict(plain)
    with pytest.raises(EquipoiseError, match="the coarse grid of a has 1,000,000 points, more than 100,000"):
        check(study, spaces_of(study))
