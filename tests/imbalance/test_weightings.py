"""What every weighting of ours does, beyond what `equipoise.testing` asks of any."""

import pytest
import torch

from equipoise.core import Output, Spec

COUNTS = [90, 10, 3]
TARGET = torch.tensor([0, 2, 1, 1, 2])
OUT = Output(torch.zeros(5, 3), feature_map=torch.randn(5, 2, 3, 3, generator=torch.Generator().manual_seed(0)))
WEIGHTINGS = [
    "effective_number",
    "effective_number(beta=0.9, start=0.5)",
    "inverse_frequency(power=0.5)",
    "bias",
    "bias(scaling='running', statistic='product')",
]
each = pytest.mark.parametrize("text", WEIGHTINGS)


def build(text, counts=COUNTS):
    return Spec.parse(text).build("weighting", class_counts=counts)


def weights(weighting, target=TARGET, out=OUT):
    return weighting(target, out)


@pytest.mark.parametrize("text", WEIGHTINGS[:3])
@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_that_is_no_class_is_an_error(text, label):
    with pytest.raises(IndexError):
        build(text)(torch.tensor([0, label]))


@each
def test_built_on_the_meta_device_and_given_its_state(text):
    expected = weights(build(text))
    for counts in (COUNTS, torch.tensor(COUNTS)):
        with torch.device("meta"):
            weighting = build(text, counts)
        weighting.load_state_dict(build(text).state_dict(), assign=True)
        assert torch.equal(weights(weighting), expected)


@pytest.mark.parametrize("text", WEIGHTINGS[:3])
def test_counts_come_back_from_the_meta_device(text):
    expected, weighting = weights(build(text)), build(text).to("meta")
    assert torch.equal(weights(weighting), expected)
    assert torch.equal(weights(weighting.to_empty(device="cpu")), expected)
    assert weighting.class_counts.tolist() == COUNTS


def test_counts_on_the_meta_device_are_no_counts():
    with pytest.raises(ValueError, match="class_counts is on the meta device, which keeps no numbers; give a list"):
        build("effective_number", torch.tensor(COUNTS, device="meta"))


@pytest.mark.parametrize("text", WEIGHTINGS[:3])
def test_weights_follow_counts_that_change(text):
    weighting = build(text)
    weights(weighting)
    weighting.class_counts.copy_(torch.tensor([3, 10, 90]))
    assert torch.equal(weights(weighting), weights(build(text, [3, 10, 90])))
    assert torch.equal(weighting.class_weights[TARGET], weights(weighting))


@each
def test_they_are_what_they_are_when_compiled(text):
    torch.compiler.reset()
    weighting, expected = build(text), build(text)
    compiled = torch.compile(weighting, backend="eager", fullgraph=True, dynamic=True)
    for n in (5, 3, 4):
        out = Output(OUT.logits[:n], feature_map=OUT.feature_map[:n])
        torch.testing.assert_close(compiled(TARGET[:n], out), weights(expected, TARGET[:n], out))
