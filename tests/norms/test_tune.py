"""Finding the example weight: right, cheap, and leaving no trace."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from equipoise.norms import BatchNorm2d, GroupNorm2d, example_weight, tune_example_weight
from equipoise.norms.example_weighing.tune import ALPHAS, _interpolation, _nodes


class Contrast(nn.Module):
    """Two classes told apart by pattern; inference images have contrasts of their own, which α can undo."""

    def __init__(self):
        super().__init__()
        self.norm = BatchNorm2d(1)
        self.norm.set_moving(torch.zeros(1), torch.full((1,), 2.0))  # as training images are
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = self.norm(x).flatten(1)
        return torch.stack([y[:, :8].sum(1), y[:, 8:].sum(1)], 1) / 2


def data(n=60):
    target = torch.arange(n) % 2
    pattern = torch.where(
        target[:, None] == 0, torch.tensor([1.0] * 8 + [0.0] * 8), torch.tensor([0.0] * 8 + [1.0] * 8)
    )
    x = pattern + torch.randn(n, 16) * 2.0
    return [
        (a.view(-1, 1, 4, 4), b) for a, b in zip((x * torch.rand(n, 1) * 6).split(16), target.split(16), strict=True)
    ]


def exact(network, batches, alpha, metric):
    with torch.no_grad(), example_weight(network.eval(), alpha):
        logits, target = torch.cat([network(x) for x, _ in batches]), torch.cat([y for _, y in batches])
    if metric == "loss":
        return F.cross_entropy(logits, target).item()
    hits = logits.argmax(1) == target
    if metric == "accuracy":
        return hits.float().mean().item()
    return torch.stack([hits[target == c].float().mean() for c in target.unique()]).mean().item()


@pytest.mark.parametrize("metric", ["accuracy", "loss", "balanced_accuracy"])
def test_the_score_of_what_it_finds_is_true(metric):
    network, batches = Contrast(), data()
    alpha = tune_example_weight(network, batches, metric, progress=None)
    assert alpha.score == pytest.approx(exact(network, batches, float(alpha), metric), abs=1e-6)
    assert alpha.usual == pytest.approx(exact(network, batches, 0.0, metric), abs=1e-6)
    curve = dict(alpha.curve)
    for measured in alpha.measured:
        assert curve[measured] == pytest.approx(exact(network, batches, measured, metric), abs=1e-6)
    assert alpha in curve and alpha in alpha.measured and alpha.metric == metric


def test_it_finds_nearly_the_best_loss_with_a_third_of_the_passes():
    network, batches = Contrast(), data()
    alpha = tune_example_weight(network, batches, "loss", progress=None)
    assert network.calls <= 7 * len(batches) and len(alpha.curve) == len(ALPHAS) == 22
    scores = {a: exact(network, batches, a, "loss") for a in ALPHAS}
    assert alpha.score <= min(scores.values()) + 0.003
    assert alpha.usual > alpha.score + 0.02  # it was worth while
    error = max(abs(dict(alpha.curve)[a] - s) for a, s in scores.items())
    assert error < 0.1 * (max(scores.values()) - min(scores.values()))


def test_the_network_is_left_as_it_was():
    network = nn.Sequential(nn.BatchNorm2d(2), nn.Dropout(0.5), nn.Flatten(), nn.Linear(8, 3))
    network[1].eval()
    before = {k: v.clone() for k, v in network.state_dict().items()}
    tune_example_weight(network, [(torch.randn(6, 2, 2, 2), torch.arange(6) % 3)], progress=None)
    assert type(network[0]) is nn.BatchNorm2d and network.training and network[0].training and not network[1].training
    assert all(torch.equal(v, before[k]) for k, v in network.state_dict().items())
    assert all(p.grad is None for p in network.parameters())


def test_of_equal_scores_the_nearest_to_usual_inference():
    batches = [(torch.randn(6, 2, 2, 2), torch.zeros(6).long())]
    for norm, usual in ((nn.BatchNorm2d(2), 0.0), (GroupNorm2d(2, 1), 1.0)):
        network = nn.Sequential(norm, nn.Flatten(), nn.Linear(8, 1))  # one class: always right
        assert tune_example_weight(network, batches, progress=None) == usual


def test_a_generator_and_few_candidates():
    network = Contrast()
    alpha = tune_example_weight(network, iter(data()), "loss", progress=None)
    assert alpha in alpha.measured and len(alpha.measured) == 5
    alpha = tune_example_weight(network, data(), "loss", alphas=[0.3, 0.1], progress=None)
    assert alpha.measured == (0.1, 0.3) and [a for a, _ in alpha.curve] == [0.1, 0.3]
    assert tune_example_weight(network, data(), alphas=[0.2], progress=None) == 0.2


def test_interpolation_is_exact_at_nodes_and_for_cubics():
    grid = torch.tensor(ALPHAS, dtype=torch.float64)
    nodes = _nodes(grid)
    assert nodes.tolist() == [0.0, 0.05, 0.2, 0.45, 1.0]
    weights = _interpolation(nodes, grid)
    u = (grid + 0.05).log()
    cubic = 2 * u**3 - u + 4
    torch.testing.assert_close(weights @ cubic[torch.isin(grid, nodes)], cubic)
    assert weights[0].tolist() == [1, 0, 0, 0, 0]


def test_progress(capsys):
    seen, batches = [], data()
    tune_example_weight(Contrast(), batches, progress=lambda done, total: seen.append((done, total)))
    assert seen[: len(batches)] == [(i + 1, len(batches)) for i in range(len(batches))]
    assert capsys.readouterr().err == ""
    tune_example_weight(Contrast(), batches)
    captured = capsys.readouterr()
    assert f"example weight: batch 1 of {len(batches)}" in captured.err and captured.out == ""


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="metric must be one of 'accuracy', 'loss'"):
        tune_example_weight(Contrast(), data(), "f1")
    with pytest.raises(ValueError, match="batches is empty"):
        tune_example_weight(Contrast(), [], progress=None)
    with pytest.raises(ValueError, match="alpha must lie between 0 and 1"):
        tune_example_weight(Contrast(), data(), alphas=[2.0])


def test_what_it_is_compared_with_is_inference_without_weighing():
    """Where batch means differed in training, that is no weight of `batch`: not even 0."""
    network = nn.Sequential(BatchNorm2d(1), nn.Flatten(), nn.Linear(16, 2)).eval()
    network[0].running_square.fill_(9.0)
    batches = data()
    alpha = tune_example_weight(network, batches, "loss", progress=None)
    assert alpha.usual == pytest.approx(exact(network, batches, None, "loss"), abs=1e-6)
    assert alpha.usual != pytest.approx(dict(alpha.curve)[0.0], abs=1e-3)
