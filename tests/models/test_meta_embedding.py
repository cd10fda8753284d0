"""The head with a memory against loops over images, and its limits."""

import math

import numpy as np
import pytest
import torch

from equipoise.models import MetaEmbeddingHead, create_model, embed_with_memory
from equipoise.models.heads.meta_embedding import squared_distances, squashed_logits


def reference(x, centroids, recall, select, reach):
    rows = []
    for n in range(len(x)):
        share = np.exp(recall[n] - recall[n].max())
        memory = sum(s * m for s, m in zip(share / share.sum(), centroids, strict=True))
        nearest = min(math.dist(x[n], m) for m in centroids)
        rows.append(reach / nearest * (x[n] + np.tanh(select[n]) * memory))
    return np.array(rows)


def test_against_loops():
    rng = np.random.default_rng(0)
    x, m, o, s = (rng.normal(size=shape) for shape in ((5, 4), (3, 4), (5, 3), (5, 4)))
    ours = embed_with_memory(*map(torch.tensor, (x, m, o, s)), reach=7.0)
    assert ours.shape == (5, 4)
    np.testing.assert_allclose(ours, reference(x, m, o, s, 7.0), rtol=1e-9)
    w = rng.normal(size=(3, 4))
    expected = [[16 * (v @ k) / (1 + np.linalg.norm(v)) / np.linalg.norm(k) for k in w] for v in ours.numpy()]
    np.testing.assert_allclose(squashed_logits(ours, torch.tensor(w)), expected, rtol=1e-9)
    np.testing.assert_allclose(
        squared_distances(torch.tensor(x), torch.tensor(m)), [[math.dist(a, b) ** 2 for b in m] for a in x]
    )


def test_the_number_by_hand():
    # v = (3, 4): 16 · (3/6, 4/6)
    assert torch.allclose(squashed_logits(torch.tensor([[3.0, 4.0]]), 5 * torch.eye(2)), torch.tensor([[8.0, 32 / 3]]))


def head_with_memory():
    head = MetaEmbeddingHead(4, 3).double()
    head.remember(torch.randn(3, 4))
    return head


def test_it_is_linear_until_it_remembers():
    head, x = MetaEmbeddingHead(4, 3), torch.randn(5, 4)
    assert torch.equal(head(x), head.hallucinator(x))
    centroids = torch.randn(3, 4)
    head.remember(centroids)
    v = embed_with_memory(x, centroids, head.hallucinator(x), head.selector(x))
    torch.testing.assert_close(head(x), squashed_logits(v, head.weight))
    again = MetaEmbeddingHead(4, 3)
    again.load_state_dict(head.state_dict())
    assert torch.equal(again(x), head(x))


def test_gradients():
    head = head_with_memory()
    x = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(head, (x,))
    head(x).square().sum().backward()
    assert head.centroids.grad is None  # they learn from distances alone
    assert all(p.grad.abs().sum() > 0 for n, p in head.named_parameters() if n != "centroids")


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-8, 1e4])
def test_extreme_features_give_finite_gradients(scale, memory):
    head = MetaEmbeddingHead(4, 3)
    if memory:
        head.remember(torch.zeros(3, 4))
    x = (scale * torch.randn(1, 4)).requires_grad_()
    head(x).sum().backward()
    assert torch.isfinite(x.grad).all() and all(
        torch.isfinite(p.grad).all() for p in head.parameters() if p.grad is not None
    )


@pytest.mark.usefixtures("bf16")
def test_half_precision_is_computed_in_full():
    head = MetaEmbeddingHead(64, 3)
    head.remember(torch.randn(3, 64))
    x = torch.randn(5, 64).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        logits = head(x)
    assert logits.dtype == torch.float32
    assert torch.equal(logits, head(x.float()))


def test_centroids_do_not_decay():
    from equipoise.norms import decay_groups

    network = create_model("cnn_small(width=4)", 3, head="meta_embedding")
    strength = {id(p): g["weight_decay"] for g in decay_groups(network, 0.1) for p in g["params"]}
    assert strength[id(network.head.centroids)] == 0 and strength[id(network.head.weight)] == 0.1


@pytest.mark.parametrize("bad", [{"scale": 0}, {"reach": -1.0}, {"in_features": 0}, {"num_classes": 1.5}])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        MetaEmbeddingHead(**{"in_features": 4, "num_classes": 3} | bad)
