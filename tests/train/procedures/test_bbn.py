"""BBN against its formulas."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from equipoise.core import EquipoiseError, Spec
from equipoise.models import LinearHead, create_model
from equipoise.train.procedures import branch_share, reversed_shares
from equipoise.train.procedures.bbn import TwoBranches, bilateral_map

COUNTS = np.array([110, 78, 56, 40, 29, 20, 14, 10, 7, 5])


def test_bbn_schedule_and_shares():
    # at epoch 101 of 200, counted from 1: 1 - (100/200)^2
    assert branch_share(torch.tensor(100 / 200)) == 0.75
    steps = np.linspace(0, 1, 11)
    np.testing.assert_allclose(branch_share(torch.tensor(steps)), [1 - t * t for t in steps], rtol=1e-12)
    expected = (COUNTS.max() / COUNTS) / (COUNTS.max() / COUNTS).sum()
    np.testing.assert_allclose(reversed_shares(COUNTS), expected, rtol=1e-6)
    np.testing.assert_allclose(reversed_shares([0, 30, 10]), [0, 0.25, 0.75], rtol=1e-6)


@pytest.mark.parametrize("done", [0, 20, 43])
def test_bbn_minimises_its_formula(done, make_run, first_batch, cross_entropies):
    run = make_run("bbn", weighting="inverse_frequency")
    run.network.train()
    run.done.fill_(done)
    twin, stream = copy.deepcopy(run.network), run.streams["mix"].get_state()
    batch = first_batch(run)
    terms = run.procedure(run, batch)

    run.streams["mix"].set_state(stream)
    rare = run.procedure.pool.draw(run, 32)
    a = 1 - (done / len(run.rates)) ** 2
    features = []
    for x, branch in ((batch.inputs, twin.stage3.conventional), (rare.inputs, twin.stage3.rebalancing)):
        features.append(
            branch(twin.stage3.shared(twin.stage2(twin.stage1(twin.stem(x))))).mean((2, 3)).detach().double()
        )
    mixed = np.concatenate([2 * a * features[0], 2 * (1 - a) * features[1]], 1)
    logits = mixed @ twin.head.weight.detach().double().numpy().T + twin.head.bias.detach().double().numpy()
    weights = (1 / COUNTS) / (1 / COUNTS).sum() * 10
    y_c, y_r = batch.target.numpy(), rare.target.numpy()
    values = a * weights[y_c] * cross_entropies(logits, y_c) + (1 - a) * weights[y_r] * cross_entropies(logits, y_r)
    np.testing.assert_allclose(terms.per_sample.detach(), values, rtol=1e-4, atol=1e-5)
    assert terms.total.item() == pytest.approx(values.mean(), rel=1e-4)
    for a_buffer, b_buffer in zip(
        run.network.buffers(), twin.buffers(), strict=True
    ):  # each batch moved the norms once
        torch.testing.assert_close(a_buffer, b_buffer)


def test_bbn_at_test_time_is_plain_concatenation(make_run):
    network = make_run("bbn").network.eval()
    x = torch.rand(3, 1, 8, 8)
    shared = network.stage3.shared(network.stage2(network.stage1(network.stem(x))))
    branches = [branch(shared) for branch in (network.stage3.conventional, network.stage3.rebalancing)]
    assert not torch.allclose(*branches)  # the two start from different weights
    out = network.output(x)
    torch.testing.assert_close(out.features, torch.cat([b.mean((2, 3)) for b in branches], 1))
    torch.testing.assert_close(out.feature_map, bilateral_map(*branches, 0.5))
    torch.testing.assert_close(out.logits, network.head(out.features))


@pytest.mark.parametrize(
    ("model", "shared"),
    [("cnn_small", 0), ("resnet32", 4), ("wrn_16_8", 1), ("resnet18", 1), ("allcnnc", 1), ("resnet12", 0)],
)  # fmt: skip
def test_bbn_doubles_the_last_block_of_every_network(model, shared):
    with torch.device("meta"):
        network = create_model(model, 10)
    branches = TwoBranches(network.get_submodule(network.stages[-1]))
    assert len(branches.shared) == shared
    convs = [sum(isinstance(m, nn.Conv2d) for m in b.modules()) for b in (branches.conventional, branches.rebalancing)]
    assert convs[0] == convs[1] > 0


def test_bbn_refuses_a_network_that_norms_its_features():
    bbn, network = Spec("bbn").build("procedure", class_counts=[3, 2]), create_model("densenet(depth=7, growth=2)", 2)
    with pytest.raises(EquipoiseError, match="those of DenseNet are not; choose another network"):
        bbn.adapt(network, LinearHead)
