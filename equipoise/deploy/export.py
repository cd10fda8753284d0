"""A model as one file that runs without Equipoise, checked by running it."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core import EquipoiseError, known
from ..core.extras import require
from ..store import explained
from .model import TrainedModel

LAYOUTS = ("nhwc", "nchw")
BATCHES = (1, 3, 8)  # sizes that a file is tried with
EXAMPLE = 4  # the size it is made with
OLDEST_FOR_ONNX = "2.7"  # of PyTorch: the exporter of the one before cannot write a batch norm


class WholeModel(nn.Module):
    """uint8 images, (N, h, w, c) or (N, c, h, w), to calibrated probabilities (N, C): normalization, network,
    correction and calibration in one module."""

    def __init__(self, model: TrainedModel, layout: str) -> None:
        super().__init__()
        self.layout = known("layout", layout, LAYOUTS)
        self.classifier = model.classifier
        self.temperature = model.description.calibration.temperature

    def forward(self, images: Tensor) -> Tensor:
        if self.layout == "nhwc":
            images = images.permute(0, 3, 1, 2)
        return (self.classifier(images) / self.temperature).softmax(1)


@dataclass(frozen=True)
class Way:
    """A kind of file: its name, how it is written and run again, and how much probabilities may differ."""

    file: str
    write: Callable[[TrainedModel, WholeModel, Tensor, Path], None]
    reader: Callable[[TrainedModel, WholeModel, Path], Callable[[Tensor], Tensor]]
    tolerance: float = 1e-5
    needs: tuple[str, ...] = ()


def export(model: TrainedModel, to: str, out: Path | str | None = None, *, layout: str = "nhwc") -> Path:
    """Write `model` as a file and check that it says what the model says; the path of the file.

    Args:
        model: on any device; it is written as it runs on the CPU.
        to: "onnx", "torch_export", "torchscript" or "state_dict".
        out: the file; by default one named after the format, in the working folder.
        layout: of the images that the file takes, "nhwc" as Pillow and OpenCV give them, or "nchw" as PyTorch does. A
            state_dict has weights alone, and so no layout.
    """
    way = WAYS[known("format", to, WAYS)]
    require(f"an export to {to}", *way.needs)
    model = TrainedModel(model.description, model.weights())
    whole, path = WholeModel(model, layout).eval(), Path(out or way.file)
    aside = path.with_name(f".{os.getpid()}.{path.name}")
    with explained(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _quiet(), torch.no_grad():
                _written(way, model, whole, aside, to)
                _check(way, model, whole, aside, to)
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)
    return path


def _written(way: Way, model: TrainedModel, whole: WholeModel, path: Path, to: str) -> None:
    try:
        way.write(model, whole, _images(model, whole, EXAMPLE), path)
    except (EquipoiseError, OSError):
        raise
    except Exception as error:  # exporters raise almost anything
        raise EquipoiseError(
            f"{model.description.method} cannot be exported to {to}: {_reason(error)}. 'equipoise predict' can use it, "
            "and another format may be able to hold it"
        ) from error


def _reason(error: BaseException) -> str:
    """The first line of what went wrong in the first place: exporters wrap it in pages of advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _check(way: Way, model: TrainedModel, whole: WholeModel, path: Path, to: str) -> None:
    """Run the file, as it lies there, on batches of several sizes."""
    run = way.reader(model, whole, path)
    for size in BATCHES:
        images = _images(model, whole, size)
        apart = float((run(images) - whole(images)).abs().max())
        if not apart <= way.tolerance:
            raise EquipoiseError(
                f"the file that came of exporting to {to} gives probabilities that are off by {apart:.1g} for "
                f"{size} images, more than {way.tolerance:g}; nothing was written"
            )


def _images(model: TrainedModel, whole: WholeModel, n: int) -> Tensor:
    channels, height, width = model.preprocessing.shape
    shape = (n, height, width, channels) if whole.layout == "nhwc" else (n, channels, height, width)
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(n)).to(torch.uint8)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch's exporters say to their developers."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _any_batch() -> Any:
    return ({0: torch.export.Dim("batch", max=2**31)},)


def _write_onnx(model: TrainedModel, whole: WholeModel, example: Tensor, path: Path) -> None:
    if torch.__version__ < OLDEST_FOR_ONNX:
        raise EquipoiseError(
            f"an export to onnx needs PyTorch {OLDEST_FOR_ONNX} or newer, and this is {torch.__version__}: update it, "
            "or choose torch_export or torchscript"
        )
    program = torch.onnx.export(
        whole,
        (example,),
        dynamo=True,
        dynamic_shapes=_any_batch(),
        input_names=["images"],
        output_names=["probabilities"],
        verbose=False,
    )
    assert program is not None
    program.save(str(path))


def _run_onnx(model: TrainedModel, whole: WholeModel, path: Path) -> Callable[[Tensor], Tensor]:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return lambda images: torch.from_numpy(session.run(None, {"images": images.numpy()})[0])


def _write_export(model: TrainedModel, whole: WholeModel, example: Tensor, path: Path) -> None:
    torch.export.save(torch.export.export(whole, (example,), dynamic_shapes=_any_batch()), str(path))


def _run_export(model: TrainedModel, whole: WholeModel, path: Path) -> Callable[[Tensor], Tensor]:
    return torch.export.load(str(path)).module()


def _write_script(model: TrainedModel, whole: WholeModel, example: Tensor, path: Path) -> None:
    torch.jit.save(torch.jit.trace(whole, example), str(path))


def _run_script(model: TrainedModel, whole: WholeModel, path: Path) -> Callable[[Tensor], Tensor]:
    return torch.jit.load(str(path))


def _write_weights(model: TrainedModel, whole: WholeModel, example: Tensor, path: Path) -> None:
    if (posthoc := model.description.recipe["posthoc"]) is not None:
        raise EquipoiseError(
            f"a state_dict has weights alone, and {posthoc} corrects what comes of them: choose onnx, torch_export or "
            "torchscript, or the method that it corrects"
        )
    torch.save(model.weights(), str(path))


def _run_weights(model: TrainedModel, whole: WholeModel, path: Path) -> Callable[[Tensor], Tensor]:
    """The weights in a network made anew."""
    again = TrainedModel(model.description, torch.load(str(path), weights_only=True))
    return WholeModel(again, whole.layout).eval()


WAYS = {
    "onnx": Way("model.onnx", _write_onnx, _run_onnx, 1e-4, ("onnx", "onnxscript", "onnxruntime")),
    "torch_export": Way("model.pt2", _write_export, _run_export),
    "torchscript": Way("model.torchscript", _write_script, _run_script),
    "state_dict": Way("model.pt", _write_weights, _run_weights),
}
