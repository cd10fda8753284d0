"""Each kernel of the stacked trunk against its formula in float64, on what the kernel before it has left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: the kernels are CUDA's"),
]
ROUNDING = 2.0**-8  # of bf16

CASES = {  # runs, images, channels of the images, examples of a norm's block, channels that share a statistic
    "batch": (3, 5, 3, 5, 1),
    "grey, one image": (2, 1, 1, 1, 1),
    "ghosts that do not divide": (2, 7, 3, 3, 1),
    "groups of channels": (2, 4, 3, 1, 4),
    "batch groups": (2, 5, 4, 2, 8),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def trunk(request: pytest.FixtureRequest) -> Iterator[object]:
    """A trunk of depth 14 that has done a step, forward and backward, on random numbers."""
    from equipoise.train.stacked.trunk import Trunk

    runs, images, channels, size, share = request.param
    device = torch.device("cuda")
    torch.manual_seed(0)
    trunk = Trunk(14, channels, runs, images, -(-images // size), device)
    trunk.block_size.fill_(size)
    trunk.rate.copy_(torch.linspace(0.1, 0.3, runs))
    trunk.parameters.normal_(0, 0.1)
    for layer in trunk.layers:
        layer.shared_channels.fill_(share)
        layer.epsilon.fill_(1e-5)
        trunk.parameters[:, layer.gamma : layer.beta].uniform_(0.5, 1.5)
    trunk.moving["mean"].normal_()
    trunk.moving["var"].uniform_(0.5, 2)
    trunk.moving["square"].copy_(trunk.moving["mean"] ** 2 + trunk.moving["var"])
    trunk.images_in[..., :channels].normal_()
    trunk.before = {name: value.clone() for name, value in trunk.moving.items()}
    for buffer in (trunk.sums, trunk.gradients, trunk.parts, *(layer.out for layer in trunk.layers)):
        buffer.fill_(float("nan"))  # whatever is not written shows
    for layer in trunk.layers:
        layer.gradient.fill_(float("nan"))
    trunk.arrange_weights()
    maps = [trunk.stem_forward()]
    for number in range(3):
        maps.append(trunk.stage_forward(number, maps[-1]))
    trunk.move_averages()
    trunk.pool()
    trunk.after = {name: value.clone() for name, value in trunk.moving.items()}
    trunk.last_gradient = torch.randn_like(maps[-1])
    trunk.end_backward(2, trunk.last_gradient)
    trunk.into = torch.full_like(maps[1], float("nan"))
    trunk.stage_backward(2, maps[2], into=None)
    trunk.stage_backward(1, maps[1], into=trunk.into)  # as where something is mixed between the stages
    trunk.end_backward(0, trunk.into)
    trunk.stage_backward(0, maps[0], into=None)
    trunk.stem_backward()
    trunk.finish()
    torch.cuda.synchronize()
    trunk.maps = maps
    yield trunk


def weight_of(trunk, layer, run: int) -> Tensor:
    flat = trunk.parameters[run, layer.weight : layer.weight + 9 * layer.taken * layer.co]
    return flat.view(layer.co, 3, 3, layer.taken).permute(0, 3, 1, 2).bfloat16().double()


def wide(x: Tensor) -> Tensor:
    """(images, row, column, channel) -> (images, channel, row, column), float64."""
    return x.double().permute(0, 3, 1, 2)


def factor(trunk, layer, factors: Tensor, run: int) -> list[Tensor]:
    """Per image (images, channel, 1, 1)."""
    block = torch.arange(trunk.images, device="cuda") // trunk.block_size[run]
    return [f[..., None, None] for f in factors[run].double()[block].unbind(-1)]


def read(trunk, layer, run: int) -> Tensor:
    """The layer's output behind its norm and ReLU, rounded as a reader rounds it."""
    s, t = factor(trunk, layer, layer.factors, run)
    return F.relu(s * wide(layer.out[run]) + t).bfloat16().double()


def gradient_in(trunk, layer, run: int) -> Tensor:
    """The gradient of the layer's convolution, rounded as a reader rounds it."""
    a, b, c, _ = factor(trunk, layer, layer.gradient_factors, run)
    return (a * wide(layer.gradient[run]) + b * wide(layer.out[run]) + c).bfloat16().double()


def inputs(trunk, run: int) -> list[Tensor]:
    """What each layer's convolution was given."""
    given, x = [wide(trunk.images_in[run])[:, : trunk.in_channels]], trunk.stem_map
    for stage in trunk.stages:
        for block in stage:
            given += [wide(x[run]), read(trunk, block.first, run)]
            x = block.map
    return given


def close(got: Tensor, wanted: Tensor, tolerance: float = ROUNDING) -> None:
    """To bf16's rounding, and where terms cancel to a small part of the largest."""
    assert got.isfinite().all()
    assert got.shape == wanted.shape
    error = (got.double() - wanted).abs()
    assert (error <= tolerance * wanted.abs() + 1e-3 * tolerance / ROUNDING * wanted.abs().max()).all(), error.max()


def test_convolutions(trunk) -> None:
    for run in range(trunk.runs):
        for layer, x in zip(trunk.layers, inputs(trunk, run), strict=True):
            close(wide(layer.out[run]), F.conv2d(x, weight_of(trunk, layer, run), stride=layer.stride, padding=1))


def test_norms(trunk) -> None:
    for run in range(trunk.runs):
        for layer in trunk.layers:
            share = int(layer.shared_channels[run])
            for b, part in enumerate(wide(layer.out[run]).split(int(trunk.block_size[run]))):
                groups = part.transpose(0, 1).reshape(layer.co // share, -1)
                mean, var = (
                    groups.mean(1).repeat_interleave(share),
                    groups.var(1, correction=0).repeat_interleave(share),
                )
                gamma, beta = (trunk.parameters[run, at : at + layer.co].double() for at in (layer.gamma, layer.beta))
                s = gamma / (var + 1e-5).sqrt()
                close(layer.factors[run, b], torch.stack([s, beta - s * mean], -1), 1e-4)


def test_moving_averages(trunk) -> None:
    for run in range(trunk.runs):
        rate = float(trunk.rate[run])
        for layer in trunk.layers:
            here = slice(layer.before * trunk.runs + run * layer.co, layer.before * trunk.runs + (run + 1) * layer.co)
            before, after = ({k: v[here].double() for k, v in d.items()} for d in (trunk.before, trunk.after))
            x = wide(layer.out[run]).transpose(0, 1).flatten(1)
            close(after["mean"], (1 - rate) * before["mean"] + rate * x.mean(1), 1e-5)
            close(after["var"], (1 - rate) * before["var"] + rate * x.var(1), 1e-4)
            close(after["square"] + after["rest"], (1 - rate) * before["square"] + rate * x.square().mean(1), 1e-4)


def test_blocks(trunk) -> None:
    for run in range(trunk.runs):
        x = trunk.stem_map
        close(wide(x[run]), read(trunk, trunk.stem, run))
        for stage in trunk.stages:
            for block in stage:
                s, t = factor(trunk, block.second, block.second.factors, run)
                shortcut = wide(x[run])
                if block.first.stride == 2:
                    extra = (block.first.co - block.first.ci) // 2
                    shortcut = F.pad(shortcut[:, :, ::2, ::2], (0, 0, 0, 0, extra, extra))
                close(wide(block.map[run]), F.relu(s * wide(block.second.out[run]) + t + shortcut))
                x = block.map


def test_gradients_of_weights(trunk) -> None:
    for run in range(trunk.runs):
        for layer, x in zip(trunk.layers, inputs(trunk, run), strict=True):
            wanted = torch.nn.grad.conv2d_weight(
                x, weight_of(trunk, layer, run).shape, gradient_in(trunk, layer, run), layer.stride, 1
            )
            got = trunk.gradients[run, layer.weight : layer.weight + wanted.numel()]
            # a value that a reader rounds to the other neighbour, here in float64, counts as much as 1e-4 of the sum
            close(got.view(layer.co, 3, 3, layer.taken).permute(0, 3, 1, 2), wanted, 1e-3)


def test_gradients_of_norms(trunk) -> None:
    """Autograd, through the norm in float64."""
    for run in range(trunk.runs):
        for layer in trunk.layers:
            share, size = int(layer.shared_channels[run]), int(trunk.block_size[run])
            x = wide(layer.out[run]).requires_grad_()
            gamma, beta = (
                trunk.parameters[run, at : at + layer.co].double().requires_grad_() for at in (layer.gamma, layer.beta)
            )
            parts = []
            for part in x.split(size):
                groups = part.reshape(len(part), layer.co // share, -1)
                mean = groups.mean((0, 2), keepdim=True)
                var = (groups - mean).square().mean((0, 2), keepdim=True)
                parts.append(((groups - mean) / (var + 1e-5).sqrt()).view_as(part))
            y = torch.cat(parts) * gamma[:, None, None] + beta[:, None, None]
            wanted = torch.autograd.grad(y, (x, gamma, beta), wide(layer.gradient[run]))
            a, b, c, _ = factor(trunk, layer, layer.gradient_factors, run)
            close(a * wide(layer.gradient[run]) + b * wide(layer.out[run]) + c, wanted[0], 1e-3)
            for at, value in zip((layer.gamma, layer.beta), wanted[1:], strict=True):
                close(trunk.gradients[run, at : at + layer.co], value, 1e-3)


def test_gradients_of_inputs(trunk) -> None:
    for run in range(trunk.runs):
        given, behind = trunk.stem_map, trunk.stem
        for number, stage in enumerate(trunk.stages):
            for i, block in enumerate(stage):
                first, second = block.first, block.second
                inner = transposed(trunk, second, run) * (read_sign(trunk, first, run) > 0)
                close(wide(first.gradient[run]), inner)
                shortcut = wide(second.gradient[run])
                if block.first.stride == 2:
                    extra = (first.co - first.ci) // 2
                    spread = torch.zeros_like(wide(given[run]))
                    spread[:, :, ::2, ::2] = shortcut[:, extra : extra + first.ci]
                    shortcut = spread
                outer = transposed(trunk, first, run) + shortcut
                if number == 1 and i == 0:
                    close(wide(trunk.into[run]), outer)
                    outer = wide(trunk.into[run])
                close(wide(behind.gradient[run]), outer * (wide(given[run]) > 0))
                given, behind = block.map, second
        close(wide(behind.gradient[run]), wide(trunk.last_gradient[run]) * (wide(given[run]) > 0))


def test_features_are_means_over_pixels(trunk) -> None:
    close(trunk.features.double(), trunk.stages[-1][-1].map.double().mean((2, 3)))


def test_gradients_of_means_are_those_of_their_pixels(trunk) -> None:
    last = trunk.stages[-1][-1]
    before = last.second.gradient.clone()
    trunk.feature_gradients.normal_()
    trunk.pooled_backward()
    expected = (trunk.feature_gradients.double() / 64)[:, :, None, None] * (last.map > 0)
    assert torch.equal(last.second.gradient.double(), expected)
    pooled, sums = last.second.gradient.clone(), trunk.sums.clone()
    trunk.end_backward(2, (trunk.feature_gradients / 64)[:, :, None, None].expand_as(pooled).contiguous())
    assert torch.equal(last.second.gradient, pooled)
    assert torch.equal(trunk.sums.nan_to_num(), sums.nan_to_num())
    last.second.gradient.copy_(before)


def test_weights_move_as_sgd_moves_them(trunk) -> None:
    from equipoise.train.stacked.descent import DescentTable
    from equipoise.train.stacked.kernels import pointers

    runs, device = trunk.runs, trunk.device
    parameters, velocities = trunk.parameters.clone(), trunk.velocities.clone()
    trunk.velocities.normal_()
    moves, nesterov = torch.arange(runs, device=device) != 1, torch.arange(runs, device=device) == 0
    rate, momentum = torch.linspace(0.1, 0.3, runs, device=device), torch.linspace(0.5, 0.9, runs, device=device)
    decay = torch.rand_like(parameters)
    p, g, v = (t.double() for t in (parameters, trunk.gradients, trunk.velocities))
    trunk.move_weights(pointers(DescentTable, moves, nesterov, rate, momentum, decay))
    g = g + decay.double() * p
    moved = momentum.double()[:, None] * v + g
    step = torch.where(nesterov[:, None], g + momentum.double()[:, None] * moved, moved)
    assert torch.equal(trunk.parameters[1], parameters[1])
    for run in (run for run in range(runs) if run != 1):
        close(trunk.velocities[run].double(), moved[run], 1e-6)
        close(trunk.parameters[run].double(), p[run] - rate[run].double() * step[run], 1e-6)
    trunk.parameters.copy_(parameters)
    trunk.velocities.copy_(velocities)


def transposed(trunk, layer, run: int) -> Tensor:
    return F.conv_transpose2d(
        gradient_in(trunk, layer, run), weight_of(trunk, layer, run), stride=layer.stride, padding=1,
        output_padding=layer.stride - 1,
    )  # fmt: skip


def read_sign(trunk, layer, run: int) -> Tensor:
    s, t = factor(trunk, layer, layer.factors, run)
    return s * wide(layer.out[run]) + t
