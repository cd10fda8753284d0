"""The same numbers whatever PyTorch's default type and device are, each default in a process of its own.

What a user hands over, inputs and the weights of modules, is float32 on the CPU in all of them; everything that the
library makes by itself must then come out alike.
"""

import subprocess
import sys

import numpy as np
import pytest
import torch

from equipoise import (
    analysis,
    core,  # noqa: F401 - they fill the registry
    imbalance,
    losses,
    models,
)
from equipoise.core import Output, Spec, cards
from equipoise.train.procedures.bbn import reversed_shares
from equipoise.train.schedule import learning_rates

N, C, D = 24, 4, 6
COUNTS = [500, 90, 12, 3]
RNG = np.random.default_rng(0)
SHAPES = (N, D, 5, 5), (N, D), (N, C), (2, 3, 16, 16)
X, FEATURES, LOGITS, IMAGES = (RNG.standard_normal(shape, np.float32) for shape in SHAPES)
TARGET = np.arange(N) % C
DEFAULTS = ["float64", "bfloat16", "float16", "meta"]


def given(array):
    return torch.from_numpy(array.copy())


def generator():
    return torch.Generator("cpu").manual_seed(5)


def users_module(make):
    """A module with weights, as a user makes it who wants it on the CPU in float32: they are none of the defaults'."""
    with torch.device("cpu"):
        module = make().float()
        for i, parameter in enumerate(module.parameters()):
            torch.nn.init.normal_(parameter, 1, 0.1, generator=torch.Generator("cpu").manual_seed(i))
    return module


def of_losses():
    for card in cards("loss"):
        loss = card.factory(**({"class_counts": COUNTS} if card.facts else {}), **card.examples[0])
        for reduction in ("mean", "none"):
            loss.reduction, logits = reduction, given(LOGITS).requires_grad_()
            value = loss(logits, given(TARGET))
            yield f"{card.name} {reduction}", value
            yield f"{card.name} {reduction} slope", torch.autograd.grad(value.sum(), logits)[0]
        yield f"{card.name} of labels alone", loss(given(LOGITS), given(TARGET))
    drawn = losses.EqualizationLoss(COUNTS, threshold=0.5, reduction="none")
    drawn.generator = generator()
    yield "draws of equalization", drawn(given(LOGITS).requires_grad_(), given(TARGET))
    yield "penalty", losses.logit_penalty(given(LOGITS))


def of_imbalance():
    out = Output(given(LOGITS), given(FEATURES), given(X))
    for name in ("effective_number", "inverse_frequency", "bias", "bias(scaling='running')"):
        weighting = Spec.parse(name).build("weighting", class_counts=COUNTS)
        yield name, weighting(given(TARGET), out)
    yield "floats as counts", imbalance.effective_number_weights([70000.0, 12.0], 0.999)
    for card in cards("sampler"):
        yield card.name, torch.from_numpy(np.array(list(Spec(card.name).build("sampler", labels=TARGET.tolist()))))
    for name in ("logit_adjust", "logit_adjust(tau=None)", "tau_norm", "temperature"):
        posthoc = Spec.parse(name).build("posthoc", class_counts=COUNTS, head_weight=given(FEATURES[:C]))
        yield name, posthoc.fit(out, given(TARGET))(out)


def of_norms():
    for card in cards("norm"):
        norm = users_module(lambda card=card: card.factory(D))
        x = given(X).requires_grad_()
        y = norm(x)
        yield card.name, y
        yield f"{card.name} slope", torch.autograd.grad((y * given(X)).sum(), x)[0]
        for name, buffer in norm.named_buffers():
            yield f"{card.name} {name}", buffer.clone()
        norm.eval()
        yield f"{card.name} in inference", norm(given(X))
        norm.example_weight = 0.3
        with torch.no_grad():
            yield f"{card.name} with example weight", norm(given(X))


def of_networks():
    for card in cards("head"):
        head = users_module(lambda card=card: card.factory(D, C))
        head.generator = generator()
        yield card.name, head(given(FEATURES))
    network = users_module(lambda: models.create_model("cnn_small", num_classes=C)).eval()
    yield "cnn_small", network(given(IMAGES))


def of_mixing():
    for card in cards("mix"):
        mix = card.factory(**({"class_counts": COUNTS} if card.facts else {}))
        mix.generator = generator()
        if card.name == "none":
            continue
        mixed = mix(given(X), given(TARGET))
        yield card.name, mixed.inputs
        yield f"{card.name} lam", mixed.lam
        yield f"{card.name} partner", mixed.partner


def of_analysis():
    half = N // 2
    yield "calibration", analysis.expected_calibration_error(given(LOGITS).softmax(1), given(TARGET))
    yield "separation", analysis.class_separation(given(FEATURES), given(TARGET))
    yield "cka", analysis.linear_cka(given(FEATURES), given(X).flatten(1))
    parts = given(FEATURES[:half]), given(TARGET[:half]), given(FEATURES[half:]), given(TARGET[half:])
    yield "deviation", analysis.feature_deviation(*parts, rounds=20)
    yield "probe", analysis.linear_probe(*parts).accuracies
    yield "hardness", analysis.angular_visual_hardness(given(FEATURES), given(FEATURES[:C]), given(TARGET))
    yield "spectrum", analysis.singular_values(given(FEATURES), centered=True)
    yield "temperature", analysis.fit_temperature(given(LOGITS), given(TARGET))


def of_training():
    schedule = Spec.parse("cosine").build("schedule", epochs=3)
    yield "rates", learning_rates(schedule, 0.1, 3, 1.0, 4)
    yield "reversed shares", reversed_shares(COUNTS)


PARTS = [of_losses, of_imbalance, of_norms, of_networks, of_mixing, of_analysis, of_training]


def numbers():
    """Everything, by part and name, in float64."""
    found = {}
    for part in PARTS:
        torch.manual_seed(0)
        for name, value in part():
            value = torch.as_tensor(value, device=value.device if isinstance(value, torch.Tensor) else "cpu")
            assert value.device.type == "cpu", f"{name} is on {value.device}"
            found[f"{part.__name__}: {name}"] = value.detach().double().numpy()
    return found


@pytest.fixture(scope="module")
def usual():
    return numbers()


@pytest.mark.parametrize("default", DEFAULTS)
def test_numbers_do_not_depend_on_the_defaults(usual, default, tmp_path):
    file = tmp_path / "numbers.npz"
    done = subprocess.run([sys.executable, __file__, default, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    found = np.load(file)
    assert set(found) == set(usual)
    for name, expected in usual.items():
        np.testing.assert_allclose(found[name], expected, rtol=2e-5, atol=2e-6, err_msg=name)


if __name__ == "__main__":
    if sys.argv[1] == "meta":
        torch.set_default_device("meta")
    else:
        torch.set_default_dtype(getattr(torch, sys.argv[1]))
    np.savez(sys.argv[2], **numbers())
