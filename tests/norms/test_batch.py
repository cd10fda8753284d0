"""Our batch norm is PyTorch's, and tracks the moving average of x²."""

import numpy as np
import pytest
import torch
from torch import nn

from equipoise import native
from equipoise.models import create_model
from equipoise.norms import BatchNorm2d


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "PyTorch alone"])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_it_is_pytorchs(layout, kernels, monkeypatch):
    """To the bit where it calls PyTorch's own, to rounding by the kernels in C."""
    if not kernels:
        monkeypatch.setattr(native, "library", lambda: None)
    rounding = 0.0 if native.library() is None else 1e-6
    ours, stock = BatchNorm2d(3), nn.BatchNorm2d(3)
    assert isinstance(ours, nn.BatchNorm2d)
    for n in (8, 8, 3):
        x = (torch.randn(n, 3, 4, 4) * 2 + 1).contiguous(memory_format=layout)
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        ya, yb = ours(a), stock(b)
        ours.zero_grad(), stock.zero_grad()
        (ya**3).sum().backward()
        (yb**3).sum().backward()
        terms = 3 * yb.detach().abs() ** 3  # the gradients are made of sums of these and smaller ones, of either sign
        for found, wanted, size in (
            (ya, yb, yb.detach().abs().max()),
            (a.grad, b.grad, terms.max()),
            (ours.weight.grad, stock.weight.grad, terms.sum()),
            (ours.bias.grad, stock.bias.grad, terms.sum()),
        ):
            torch.testing.assert_close(found, wanted, rtol=0, atol=rounding * float(size))
    for name, buffer in stock.named_buffers():
        torch.testing.assert_close(getattr(ours, name), buffer)
    torch.testing.assert_close(ours.eval()(x), stock.eval()(x))


def test_the_moving_average_of_the_square(reference):
    norm = BatchNorm2d(2)
    batches = [torch.randn(4, 2, 3, 3) + offset for offset in (-3.0, 0.0, 5.0)]  # means that differ: var misses this
    for x in batches:
        norm(x)
    squares = [(x.double().numpy() ** 2).mean((0, 2, 3)) for x in batches]
    means = [x.double().numpy().mean((0, 2, 3)) for x in batches]
    square, mean = reference.moving_average(squares, 1.0, 0.1), reference.moving_average(means, 0.0, 0.1)
    np.testing.assert_allclose(norm.running_square, square, rtol=1e-5)
    np.testing.assert_allclose(norm.moving()[1], square - mean**2, rtol=1e-5)
    assert (norm.moving()[1] > norm.running_var + 2).all()


def test_far_from_zero():
    norm = BatchNorm2d(2, momentum=0.5)
    x = 3e4 + torch.randn(64, 2, 8, 8)
    for _ in range(40):
        norm(x)
    torch.testing.assert_close(norm.moving()[1].double(), x.double().var((0, 2, 3), correction=0), rtol=1e-2, atol=0)


def test_a_stock_checkpoint_can_be_loaded_and_saved_again():
    stock = nn.BatchNorm2d(3)
    stock(torch.randn(8, 3, 4, 4) * 3 + 50)
    ours = BatchNorm2d(3)
    ours.load_state_dict(stock.state_dict())
    torch.testing.assert_close(ours.moving()[1], stock.running_var)
    again = BatchNorm2d(3)
    again.load_state_dict(ours.state_dict())
    assert torch.equal(again.square_rest, ours.square_rest)
    again.reset_running_stats()
    assert again.running_square.tolist() == [1.0, 1.0, 1.0] and again.square_rest.tolist() == [0.0, 0.0, 0.0]


def test_other_shapes_and_bf16():
    for shape in ((6, 3), (6, 3, 5), (6, 3, 2, 2, 2)):
        x = torch.randn(shape)
        torch.testing.assert_close(
            BatchNorm2d(3)(x).mean(0), nn.LazyBatchNorm1d()(x.reshape(6, 3, -1)).reshape(shape).mean(0)
        )
    x = torch.randn(8, 3, 4, 4).bfloat16()
    assert torch.equal(BatchNorm2d(3)(x), nn.BatchNorm2d(3)(x))
    with pytest.raises(ValueError, match="BatchNorm2d expects floating inputs"):
        BatchNorm2d(3)(torch.zeros(2, 4, 1, 1))


def test_traces_in_one_graph_that_reads_the_input_once_for_statistics():
    """PyTorch's own operation stays in the graph, so that a compiler fuses it as it does nn.BatchNorm2d."""
    ours, twin = BatchNorm2d(3), BatchNorm2d(3)
    graphs = []
    compiled = torch.compile(ours, backend=lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)
    x = torch.randn(5, 3, 4, 4)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    ya, yb = compiled(a), twin(b)
    torch.testing.assert_close(ya, yb, atol=1e-5, rtol=1e-5)
    for y in (ya, yb):
        (y**3).sum().backward()
    terms = 3 * yb.detach().abs() ** 3
    for found, wanted, size in ((a, b, terms.max()), (ours.weight, twin.weight, terms.sum())):
        torch.testing.assert_close(found.grad, wanted.grad, rtol=0, atol=1e-6 * float(size))
    for name, buffer in twin.named_buffers():
        torch.testing.assert_close(ours.get_buffer(name), buffer, rtol=1e-5, atol=1e-6)
    (graph,) = graphs
    (source,) = [n for n in graph.graph.nodes if n.op == "placeholder" and n.meta["example_value"].shape == x.shape]
    assert [user.target for user in source.users if user.op == "call_function"] == [torch.nn.functional.batch_norm]


def test_it_is_what_the_recipe_text_batch_makes():
    network = create_model("cnn_small(width=4)", num_classes=3, norm="batch")
    assert [type(m) for m in network.modules() if isinstance(m, nn.BatchNorm2d)] == [BatchNorm2d] * 4
