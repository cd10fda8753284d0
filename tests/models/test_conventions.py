"""Networks and heads where PyTorch is set up otherwise: the meta device, other default types, empty batches."""

import pytest
import torch

from equipoise.core import cards
from equipoise.models import DropoutHead, create_model

SMALL = "cnn_small(width=4)"
HEADS = [card.name for card in cards("head")]
NORMS = ["batch", "ghost(ghost_size=4)", "batch_group(groups=4)", "group(groups=4)", "batch_renorm"]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("head", HEADS)
def test_made_without_memory_and_filled_later(norm, head):
    """As Hugging Face's `from_pretrained` does: made on the meta device, given memory, given weights."""
    options = {"norm": norm, "head": head}
    torch.manual_seed(1)
    trained = create_model(SMALL, 3, **options)
    trained(torch.randn(8, 3, 8, 8))
    with torch.device("meta"):
        copies = [create_model(SMALL, 3, **options) for _ in range(2)]
    assert all(t.is_meta for t in copies[0].state_dict().values())
    copies[0].to_empty(device="cpu").load_state_dict(trained.state_dict())
    copies[1].load_state_dict(trained.state_dict(), assign=True)
    x = torch.randn(3, 3, 8, 8)
    for copy in copies:
        assert not any(t.is_meta for t in (*copy.parameters(), *copy.buffers()))
        torch.testing.assert_close(copy.eval()(x), trained.eval()(x), rtol=0, atol=0)


@pytest.fixture
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("head", HEADS)
def test_in_double_precision(double, head):
    network = create_model(SMALL, 3, head=head)
    x = torch.randn(4, 3, 8, 8)
    logits = network(x)
    assert logits.dtype == x.dtype == torch.float64
    logits.sum().backward()
    assert all(p.grad.dtype == torch.float64 for p in network.parameters() if p.grad is not None)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("training", [True, False])
def test_an_empty_batch(head, training):
    """The last batch of one process of several may be empty, and the others wait for its gradients."""
    made = create_model(SMALL, 3, head=head).head.train(training)
    before = {name: t.clone() for name, t in made.state_dict().items()}
    logits = made(torch.zeros(0, made.in_features, requires_grad=True))
    assert logits.shape == (0, 3)
    logits.sum().backward()
    assert all(torch.equal(t, before[name]) for name, t in made.state_dict().items())
    grads = {name: p.grad for name, p in made.named_parameters() if p.grad is not None}
    assert not any(grad.any() for grad in grads.values())
    made.zero_grad()
    made(torch.randn(2, made.in_features)).sum().backward()
    assert grads.keys() == {name for name, p in made.named_parameters() if p.grad is not None}


def test_dropout_drops_the_same_features_whatever_the_default_type(double):
    head, x = DropoutHead(4, 2, keep=0.7).float(), torch.ones(500, 4, dtype=torch.float32)
    head.weight.data, head.bias.data = torch.eye(4, dtype=torch.float32)[:2], torch.zeros(2, dtype=torch.float32)
    torch.manual_seed(0)
    in_double = head(x)
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(0)
    assert torch.equal(head(x), in_double)
