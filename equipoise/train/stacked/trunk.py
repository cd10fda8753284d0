"""The body of a CIFAR ResNet for all runs of a pack: buffers on the device, and the launches of a step.

A map is stored as its convolution leaves it (`Layer.out`); who reads it applies the norm and the ReLU. So a layer is a
convolution and its norm's few numbers: forward, the convolution with the sums for its norm; backward, the gradient of
its weights and that of its input, again with the sums for the norm before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ...native.cuda import Program
from .kernels import (
    PADDED_CHANNELS,
    PARTS,
    SOURCE,
    STORED_CHANNELS,
    UNIT,
    Blocks,
    Norms,
    Source,
    Target,
    Warps,
    backward_kernel,
    end_kernel,
    forward_kernel,
    pointers,
    weights_kernel,
)
from .layer import Block, Layer

SIDE, WIDTH = 32, 16  # of the images, channels of the first stage
THREADS = 256
NORM_THREADS = 512  # the same for all packs: it decides in which order sums are added


class Trunk:
    """stem, stage1, stage2 and stage3 of `runs` networks, for batches of `images`.

    `parameters`, `gradients` and `velocities` (run, P) are the rows of the networks' weights. The caller fills
    `images_in` (`move_images` does, where they are only shifted and mirrored), calls `arrange_weights`, goes forward
    from the stem through the stages to `pool`, lets the moving averages move, goes back the same way, from
    `pooled_backward` or `end_backward` to `finish`, and moves the weights.
    """

    def __init__(self, depth: int, in_channels: int, runs: int, images: int, blocks: int, device: torch.device) -> None:
        self.runs, self.images, self.most_blocks, self.device = runs, images, blocks, device
        self.in_channels = in_channels
        self._lay_out(depth)
        self._allocate()
        self._tables()
        self.program = Program(SOURCE, self._names(), device)
        self._goes_on = False  # whether the last launch on the stream was one of ours
        self._aside = torch.cuda.Stream(device)  # for gradients of weights above all: only `finish` waits for them

    # -- what there is ------------------------------------------------------------------------------------------------

    def _lay_out(self, depth: int) -> None:
        self.layers: list[Layer] = []
        self._place = self._channels = 0

        def layer(ci: int, co: int, side: int, stride: int, taken: int | None = None) -> Layer:
            taken = ci if taken is None else taken
            weight, gamma = self._place, self._place + 9 * taken * co
            made = Layer(ci, co, side, stride, weight, gamma, gamma + co, taken, self._channels)
            self._place, self._channels = gamma + 2 * co, self._channels + co
            self.layers.append(made)
            return made

        self.stem = layer(PADDED_CHANNELS, WIDTH, SIDE, 1, self.in_channels)
        self.stages: list[list[Block]] = []
        channels, side = WIDTH, SIDE
        for width in (WIDTH, 2 * WIDTH, 4 * WIDTH):
            stage = []
            for i in range((depth - 2) // 6):
                stride = 2 if i == 0 and width != WIDTH else 1
                side //= stride
                stage.append(Block(layer(channels, width, side, stride), layer(width, width, side, 1)))
                channels = width
            self.stages.append(stage)
        self.row = self._place

    def _allocate(self) -> None:
        runs, images, most, channels = self.runs, self.images, self.most_blocks, self._channels

        def floats(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float32, device=self.device)

        def maps(side: int, c: int) -> Tensor:
            return torch.zeros((runs, images, side, side, c), dtype=torch.bfloat16, device=self.device)

        self.parameters, self.gradients, self.velocities = (floats(runs, self.row) for _ in range(3))
        self.moving = {name: floats(runs * channels) for name in ("mean", "square", "rest", "var")}
        self.rate, self.block_size = floats(runs), torch.full((runs,), images, dtype=torch.int32, device=self.device)
        self.images_in = maps(SIDE, STORED_CHANNELS)
        per_channel = {"factors": 2, "statistics": 4, "gradient_factors": 4, "affine": 2}
        self.per_channel = {name: floats(channels * runs * most * n) for name, n in per_channel.items()}
        weights = sum(layer.weights for layer in self.layers)
        self.fragments = torch.zeros((2, runs * weights), dtype=torch.bfloat16, device=self.device)
        at = 0
        for layer in self.layers:
            layer.out, layer.gradient = maps(layer.side, layer.co), maps(layer.side, layer.co)
            layer.shift = self.moving["mean"][layer.before * runs :][: runs * layer.co].view(runs, layer.co)
            for name, n in per_channel.items():
                first = layer.before * runs * most * n
                part = self.per_channel[name][first : first + layer.co * runs * most * n]
                setattr(layer, name, part.view(runs, most, layer.co, n))
            size = runs * layer.weights
            layer.forward_weights, layer.backward_weights = self.fragments[:, at : at + size]
            at += size
            layer.shared_channels = torch.ones(runs, dtype=torch.int32, device=self.device)
            layer.epsilon = floats(runs)
        self.stem_map = maps(SIDE, WIDTH)
        for stage in self.stages:
            for block in stage:
                block.map = maps(block.second.side, block.second.co)
        self.features, self.feature_gradients = (maps(1, 4 * WIDTH)[:, :, 0, 0] for _ in range(2))
        self._parts = 0  # of an image, whose sums are in `sums`
        self.sums = floats(runs * images * SIDE * SIDE // UNIT * WIDTH * 2)
        self.parts = floats(max(runs * PARTS[layer.ci, layer.co].blocks * layer.weights for layer in self.layers))

    def _tables(self) -> None:
        """What the kernels that serve all layers at once want to know, as their structures in trunk.cu have it."""
        channels = [
            (layer.gamma + c, layer.beta + c, layer.before | c << 32, layer.co | layer.pixels << 32)
            for layer in self.layers
            for c in range(layer.co)
        ]
        self._channel_table = torch.tensor(channels, dtype=torch.int64, device=self.device)
        weights, at, fragments = [], 0, 0
        whole = self.fragments.shape[1]
        for layer in self.layers:
            size = layer.weights
            shape = (layer.taken | layer.co << 32, layer.ci | fragments << 32)
            weights.append((layer.weight, at, whole + at, *shape))
            at, fragments = at + self.runs * size, fragments + size // (32 * 4)
        self._weight_table = torch.tensor(weights, dtype=torch.int64, device=self.device)
        self._fragment_lanes = fragments * 32

    def _names(self) -> list[str]:
        names = {forward_kernel(self.stem, "IMAGE")[0], weights_kernel(self.stem, "IMAGE"), end_kernel(self.stem, 0)}
        names |= {"add_parts", "move_averages", "add_affine", "arrange_weights", "move_images", "move_weights"}
        names |= {self._pool_kernel, self._gradient_of_end(2, pooled=True)[0]}
        for layer in self.layers:
            names |= {f"norm_forward<{layer.co}>", f"norm_backward<{layer.co}>"}
        for number, stage in enumerate(self.stages):
            for block in stage:
                first, second = block.first, block.second
                shortcut = first.ci
                names |= {
                    forward_kernel(first, "AS_IT_IS")[0],
                    forward_kernel(second, "NORMALIZED")[0],
                    end_kernel(second, shortcut),
                }
                names |= {weights_kernel(first, "AS_IT_IS"), weights_kernel(second, "NORMALIZED")}
                names |= {backward_kernel(second, "THROUGH_RELU", 0)[0]}
                names |= {backward_kernel(first, "TO_BLOCK_BEFORE", first.co)[0]}
            at_start = stage[0].first
            names |= {backward_kernel(at_start, "TO_MAP", at_start.co)[0], self._gradient_of_end(number)[0]}
        names |= {self._gradient_of_end(-1)[0]}
        return sorted(names)

    # -- launches -----------------------------------------------------------------------------------------------------

    def _begin_part(self) -> None:
        """Others have used the stream since the last launch: the next one waits for them in the usual way."""
        self._goes_on = False

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is within the block is done beside what comes after it, until `wait_for_aside` or `finish`."""
        self._aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._aside):
            yield

    def wait_for_aside(self) -> None:
        torch.cuda.current_stream().wait_stream(self._aside)

    def _launch(self, name: str, grid: tuple[int, ...], threads: int, *arguments: object) -> None:
        """A kernel that follows one of ours is set up while that still runs."""
        self.program.launch(name, grid, threads, *arguments, early=self._goes_on)
        self._goes_on = True

    @property
    def _blocks(self) -> ctypes.Structure:
        return Blocks(self.block_size.data_ptr(), self.most_blocks)

    def _norms(self, layer: Layer) -> ctypes.Structure:
        gamma, beta = (self.parameters[:, place:].data_ptr() for place in (layer.gamma, layer.beta))
        tensors = layer.shared_channels.data_ptr(), layer.epsilon.data_ptr()
        return Norms(self._blocks, *tensors, gamma, beta, self.row)

    def _convolve(
        self, kernel: tuple[str, Warps], source: ctypes.Structure, target: ctypes.Structure, weights: Tensor, side: int
    ) -> None:
        name, warps = kernel
        self._parts = side * side // UNIT // warps.units
        threads = 32 * warps.units * warps.share
        grid = self.images * self._parts, self.runs
        self._launch(name, grid, threads, source, target, weights, self._blocks, self.images)

    def _norm_forward(self, layer: Layer) -> None:
        self._launch(
            f"norm_forward<{layer.co}>", (self.most_blocks, self.runs), NORM_THREADS,
            self.sums, layer.shift, self._norms(layer), layer.factors, layer.statistics,
            self.images, layer.pixels, self._parts,
        )  # fmt: skip

    def _norm_backward(self, layer: Layer) -> None:
        self._launch(
            f"norm_backward<{layer.co}>", (self.most_blocks, self.runs), NORM_THREADS,
            self.sums, layer.shift, self._norms(layer), layer.statistics, layer.gradient_factors, layer.affine,
            self.images, layer.pixels, self._parts,
        )  # fmt: skip

    def _layer_forward(self, layer: Layer, mode: str, source: ctypes.Structure) -> None:
        target = pointers(Target, layer.out, self.sums, layer.shift, None, None, None, None)
        self._convolve(forward_kernel(layer, mode), source, target, layer.forward_weights, layer.side)
        self._norm_forward(layer)

    def _block_end(self, layer: Layer, shortcut: Tensor | None, out: Tensor, channels: int) -> None:
        threads = self.images * layer.pixels * layer.co // 8
        self._launch(
            end_kernel(layer, channels), (-(-threads // THREADS), self.runs), THREADS,
            pointers(Source, layer.out, None, layer.factors),
            ctypes.c_void_p() if shortcut is None else shortcut, out, self._blocks, self.images,
        )  # fmt: skip

    # -- the step -----------------------------------------------------------------------------------------------------

    def move_images(
        self, of: Tensor, index: Tensor, corner: Tensor, mirrored: Tensor, levels: Tensor, labels: Tensor
    ) -> None:
        """Fill `images_in` and `labels` for the runs of the table `of`, whose structure is `Images` in trunk.cu."""
        threads = self.images * SIDE * SIDE
        self._begin_part()
        self._launch(
            "move_images", (-(-threads // THREADS), len(of)), THREADS,
            of, index, corner, mirrored, levels, self.images_in, labels, self.images, self.in_channels,
        )  # fmt: skip

    def arrange_weights(self) -> None:
        """The weights as the convolutions want them."""
        self.program.launch(
            "arrange_weights", (-(-self._fragment_lanes // THREADS), self.runs), THREADS,
            self._weight_table, len(self._weight_table), self.parameters, self.fragments,
            ctypes.c_longlong(self.row), self._fragment_lanes,
        )  # fmt: skip

    def stem_forward(self) -> Tensor:
        self._begin_part()
        self._layer_forward(self.stem, "IMAGE", pointers(Source, self.images_in, None, None))
        self._block_end(self.stem, None, self.stem_map, 0)
        return self.stem_map

    def stage_forward(self, number: int, x: Tensor) -> Tensor:
        self._begin_part()
        for block in self.stages[number]:
            self._layer_forward(block.first, "AS_IT_IS", pointers(Source, x, None, None))
            self._layer_forward(
                block.second, "NORMALIZED", pointers(Source, block.first.out, None, block.first.factors)
            )
            self._block_end(block.second, x, block.map, block.first.ci)
            x = block.map
        return x

    def pool(self) -> None:
        """`features`, the means over the pixels of what the last stage puts out."""
        layer, map = self._last(2)
        threads = self.images * layer.co // 2
        self._launch(
            self._pool_kernel, (-(-threads // THREADS), self.runs), THREADS, map, self.features, self.images
        )  # fmt: skip

    def move_averages(self) -> None:
        """One step of the moving averages of all norms."""
        self._launch(
            "move_averages", (-(-self._channels // 128), self.runs), 128,
            self._channel_table, self._channels, self.per_channel["statistics"], self._blocks, self.rate,
            *self.moving.values(), self.images,
        )  # fmt: skip

    def end_backward(self, number: int, gradient: Tensor) -> None:
        """From the gradient of what a stage puts out, the stem being number -1, to that behind its last norm."""
        self._begin_part()
        self._end_backward(number, gradient, self._gradient_of_end(number))

    def pooled_backward(self) -> None:
        """The same for the last stage, from the gradient of `features` in `feature_gradients`."""
        self._begin_part()
        self._end_backward(2, self.feature_gradients, self._gradient_of_end(2, pooled=True))

    def _end_backward(self, number: int, gradient: Tensor, kernel: tuple[str, Warps]) -> None:
        (layer, map), (name, warps) = self._last(number), kernel
        self._parts = layer.pixels // UNIT // warps.units
        self._launch(
            name, (self.images * self._parts, self.runs), 32 * warps.units,
            gradient, map, layer.out, layer.shift, layer.gradient, self.sums,
        )  # fmt: skip

    @property
    def _pool_kernel(self) -> str:
        layer, _ = self._last(2)
        return f"pool<{layer.co}, {layer.side}>"

    def _last(self, number: int) -> tuple[Layer, Tensor]:
        """The last layer of a stage, and what the stage puts out."""
        if number < 0:
            return self.stem, self.stem_map
        last = self.stages[number][-1]
        return last.second, last.map

    def _gradient_of_end(self, number: int, pooled: bool = False) -> tuple[str, Warps]:
        """Its sums are taken as the convolution after it takes them where nothing is between: by as many warps."""
        layer, _ = self._last(number)
        after = self.stages[number + 1][0].first if number + 1 < len(self.stages) else layer
        _, warps = backward_kernel(after, "TO_BLOCK_BEFORE", after.co)
        return f"gradient_of_end<{layer.co}, {layer.side}, {warps.units}, {str(pooled).lower()}>", warps

    def stage_backward(self, number: int, x: Tensor, *, into: Tensor | None) -> None:
        """From the gradient behind the stage's last norm to that behind the norm before the stage, or, with `into`,
        that of `x`, the stage's input."""
        stage = self.stages[number]
        for i in reversed(range(len(stage))):
            block = stage[i]
            given = x if i == 0 else stage[i - 1].map
            self._norm_backward(block.second)
            behind_first = pointers(Source, block.first.out, None, block.first.factors)
            self._weight_gradient(block.second, "NORMALIZED", behind_first)
            target = pointers(
                Target, block.first.gradient, self.sums, block.first.shift, block.first.out, block.first.factors,
                None, None,
            )  # fmt: skip
            self._input_gradient(block.second, "THROUGH_RELU", 0, target)
            self._norm_backward(block.first)
            self._weight_gradient(block.first, "AS_IT_IS", pointers(Source, given, None, None))
            if i == 0 and into is not None:
                target = pointers(Target, into, None, None, None, None, None, block.second.gradient)
                self._input_gradient(block.first, "TO_MAP", block.first.co, target)
            else:
                last = stage[i - 1].second if i else self._last(number - 1)[0]
                target = pointers(
                    Target, last.gradient, self.sums, last.shift, last.out, None, given, block.second.gradient
                )
                self._input_gradient(block.first, "TO_BLOCK_BEFORE", block.first.co, target)

    def stem_backward(self) -> None:
        self._norm_backward(self.stem)
        self._weight_gradient(self.stem, "IMAGE", pointers(Source, self.images_in, None, None))

    def move_weights(self, descent: ctypes.Structure) -> None:
        """One step of SGD, as the structure `Descent` in trunk.cu says."""
        self._launch(
            "move_weights", (-(-self.row // THREADS), self.runs), THREADS,
            self.parameters, self.gradients, self.velocities, descent, self.row,
        )  # fmt: skip

    def finish(self) -> None:
        """The gradients of γ and β; those of the weights are there too."""
        self.wait_for_aside()
        self._begin_part()
        self._launch(
            "add_affine", (-(-self._channels // 128), self.runs), 128,
            self._channel_table, self._channels, self.per_channel["affine"], self._blocks, self.gradients,
            self.images, ctypes.c_longlong(self.row),
        )  # fmt: skip

    def _input_gradient(self, layer: Layer, store: str, shortcut: int, target: ctypes.Structure) -> None:
        source = pointers(Source, layer.gradient, layer.out, layer.gradient_factors)
        side = layer.side * layer.stride
        self._convolve(backward_kernel(layer, store, shortcut), source, target, layer.backward_weights, side)

    def _weight_gradient(self, layer: Layer, mode: str, source: ctypes.Structure) -> None:
        with self.aside():
            self._weight_gradient_aside(layer, mode, source)

    def _weight_gradient_aside(self, layer: Layer, mode: str, source: ctypes.Structure) -> None:
        parts = PARTS[layer.ci, layer.co]
        behind = pointers(Source, layer.gradient, layer.out, layer.gradient_factors)
        self.program.launch(
            weights_kernel(layer, mode), (parts.blocks, self.runs, layer.co // parts.co), parts.threads(layer),
            source, behind, self.parts, self._blocks, self.images,
        )  # fmt: skip
        size = layer.weights
        self.program.launch(
            "add_parts", (-(-size // THREADS), self.runs), THREADS,
            self.parts, self.gradients, parts.blocks, size, layer.ci, layer.taken,
            ctypes.c_longlong(self.row), ctypes.c_longlong(layer.weight), early=True,
        )  # fmt: skip
