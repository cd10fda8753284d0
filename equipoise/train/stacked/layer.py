"""A layer of all runs: its shapes, its places in the rows of parameters, and what a step keeps of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class Layer:
    """A convolution and the norm after it: shapes, places in a run's row of parameters, and what a step keeps."""

    ci: int  # channels that come in, an image's padded
    co: int
    side: int  # of what goes out
    stride: int
    weight: int  # places in a row of parameters
    gamma: int
    beta: int
    taken: int  # channels of its input that its weights are for
    before: int  # channels of the norms before it
    out: Tensor = field(init=False)  # (run, image, row, column, channel) of the convolution
    gradient: Tensor = field(init=False)  # behind the norm
    shift: Tensor = field(init=False)  # (run, channel): the moving means
    forward_weights: Tensor = field(init=False)
    backward_weights: Tensor = field(init=False)
    factors: Tensor = field(init=False)  # (run, block, channel, 2)
    statistics: Tensor = field(init=False)  # (run, block, channel, 4)
    gradient_factors: Tensor = field(init=False)  # (run, block, channel, 4)
    affine: Tensor = field(init=False)  # (run, block, channel, 2)
    shared_channels: Tensor = field(init=False)  # (run,): how many share a statistic
    epsilon: Tensor = field(init=False)  # (run,)

    @property
    def pixels(self) -> int:
        return self.side * self.side

    @property
    def weights(self) -> int:
        return 9 * self.ci * self.co


@dataclass
class Block:
    """Two layers around which the shortcut goes. `map` is what it puts out."""

    first: Layer
    second: Layer
    map: Tensor = field(init=False)
