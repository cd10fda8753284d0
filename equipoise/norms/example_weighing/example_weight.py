"""Example weighing on any network: ours know it, stock batch norms are taught it, in place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.fx import Proxy

from ...core import checks
from .._taken_over import as_leaf, not_scriptable, refuse_conversion
from .weighing import example_weighted_norm


def set_example_weight(network: nn.Module, alpha: float | None) -> list[str]:
    r"""Give each example the share `alpha` in the statistics it is normalized with in inference, throughout `network`.

    .. math::
        \mu_i = \alpha E[x_i] + (1 - \alpha) m_x, \qquad
        \sigma_i^2 = \alpha E[x_i^2] + (1 - \alpha) m_{x^2} - \mu_i^2

    In place; no code, parameter or buffer of the network changes, and None gives every norm back as it was. The
    output of an example depends on that example alone, whatever batch it comes in. Our norms have tracked
    :math:`m_{x^2}`; for others (any module with `running_mean`, `running_var` and `eps`) it is their
    variance plus squared mean, which misses how much the means of training batches differed.

    Args:
        network: any module; norms without moving statistics are left alone.
        alpha: 0 uses the moving averages alone, 1 the example alone. One number for the whole network, best found by
            `tune_example_weight`. None switches weighing off: each norm's own inference, which for `batch` takes
            `running_var` in place of the average of x².

    Returns:
        The names of the norms it was set for.

    >>> network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    >>> set_example_weight(network, 0.1)
    ['1']

    Reference: Summers, Dinneen. Four Things Everyone Should Know to Improve Batch Normalization. ICLR 2020.
    """
    alpha = None if alpha is None else float(checks.between("alpha", alpha, 0, 1))
    norms = {name: module for name, module in network.named_modules() if _has_moving_statistics(module)}
    if not norms:
        raise ValueError(
            f"{type(network).__name__} has no norm with moving statistics; example weighing needs batch norms, "
            "or the norms of equipoise"
        )
    for module in norms.values():
        _set(module, alpha)
    return list(norms)


@contextmanager
def example_weight(network: nn.Module, alpha: float | None) -> Iterator[list[str]]:
    """`set_example_weight` for the length of a block; the network is left as it was."""
    before = [(module, _get(module)) for module in network.modules() if _has_moving_statistics(module)]
    try:
        yield set_example_weight(network, alpha)
    finally:
        for module, alpha in before:
            _set(module, alpha)


def _has_moving_statistics(module: nn.Module) -> bool:
    return all(getattr(module, name, None) is not None for name in ("running_mean", "running_var", "eps"))


def _get(module: Any) -> float | None:
    if hasattr(module, "example_weight"):
        return module.example_weight
    return next((hook.alpha for hook in module._forward_pre_hooks.values() if isinstance(hook, _Reshape)), None)


def _set(module: Any, alpha: float | None) -> None:
    if hasattr(module, "own_example_weight"):
        module.example_weight = module.own_example_weight if alpha is None else alpha
    elif type(module) in _STOCK or type(module) in _WEIGHTED:
        _set_stock(module, alpha)
    else:
        _set_hook(module, alpha)


# -- PyTorch's batch norms -------------------------------------------------------------------------------------------


class _Weighted(nn.modules.batchnorm._BatchNorm):
    """What a stock batch norm becomes while it weighs; its parameters, buffers and name stay as they are."""

    example_weight: float

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(x, Proxy):
            return as_leaf(self, x)
        if self.training:
            return super().forward(x)
        self._check_input_dim(x)
        assert self.running_mean is not None and self.running_var is not None
        return example_weighted_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.example_weight, self.eps
        )

    @property
    def running_var(self) -> Tensor | None:  # type: ignore[override]
        refuse_conversion(self)
        return self._buffers["running_var"]

    def __prepare_scriptable__(self) -> nn.Module:
        raise not_scriptable(self)


class ExampleWeightedBatchNorm1d(_Weighted, nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` with example weighing in inference."""


class ExampleWeightedBatchNorm2d(_Weighted, nn.BatchNorm2d):
    """`torch.nn.BatchNorm2d` with example weighing in inference."""


class ExampleWeightedBatchNorm3d(_Weighted, nn.BatchNorm3d):
    """`torch.nn.BatchNorm3d` with example weighing in inference."""


_STOCK: dict[type, type] = {
    nn.BatchNorm1d: ExampleWeightedBatchNorm1d,
    nn.BatchNorm2d: ExampleWeightedBatchNorm2d,
    nn.BatchNorm3d: ExampleWeightedBatchNorm3d,
}
_WEIGHTED = {weighted: stock for stock, weighted in _STOCK.items()}


def _set_stock(module: Any, alpha: float | None) -> None:
    module.__dict__.pop("example_weight", None)
    module.__class__ = _WEIGHTED.get(type(module), type(module))
    if alpha:  # at 0 the formula is the stock norm's own
        module.__class__ = _STOCK[type(module)]
        module.example_weight = alpha


# -- any other module with moving statistics ---------------------------------------------------------------------------


class _Reshape:
    """A forward pre-hook: changes the input so that the module's own formula gives the weighed result.

    Batch norms of other libraries add an activation or keep their statistics fixed; what they compute after
    (x - mean) / sqrt(var + eps) is theirs to know. So x becomes the value whose plain normalization is the one wanted.
    """

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def __call__(self, module: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if module.training and isinstance(module, nn.modules.batchnorm._NormBase):
            return None
        x, *rest = inputs
        std = (module.running_var + module.eps).sqrt()
        mean = module.running_mean
        return example_weighted_norm(x, mean, module.running_var, std, mean, self.alpha, module.eps), *rest


def _set_hook(module: nn.Module, alpha: float | None) -> None:
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, _Reshape):
            del module._forward_pre_hooks[key]
    if alpha:
        module.register_forward_pre_hook(_Reshape(alpha))
