"""What the command line says as text, read: class names, counts, and how images are prepared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..core import EquipoiseError
from ..core.words import shown
from ..data.frame import frame_of_photographs
from ..models.pretraining import IMAGENET, for_channels
from .images import Images, class_counts_of, folder_batches, measured
from .networks import Origin


def class_names(path: Path) -> list[str]:
    """The class in each line of a file."""
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise EquipoiseError(f"--classes {path} cannot be read as a class in each line: {error}") from None
    if len(names) < 2 or len(set(names)) < len(names):
        raise EquipoiseError(f"--classes {path} must have two classes or more, each in a line of its own and once")
    return names


def numbers(option: str, text: str) -> tuple[float, ...]:
    """
    >>> numbers("--mean", "0.5, 0.4")
    (0.5, 0.4)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise EquipoiseError(f"{option} must be numbers with commas between, not {shown(text)}") from None


def counts(text: str, names: Sequence[str]) -> list[int]:
    """Training images of each class: numbers in the order of the classes, or the folder that has them."""
    if Path(text).expanduser().is_dir():
        return class_counts_of(Path(text).expanduser(), names)
    given = numbers("--train-counts", text)
    if len(given) != len(names) or any(count < 0 or count != int(count) for count in given) or not any(given):
        raise EquipoiseError(
            f"--train-counts must be a folder, or {len(names)} whole numbers, one for each class, not {shown(text)}"
        )
    return [int(count) for count in given]


def images_for(
    origin: Origin,
    data: Path,
    names: Sequence[str] | None,
    size: int | None,
    resize: int | None,
    mean: str | None,
    std: str | None,
    batch_size: int,
) -> tuple[Images, str]:
    """How the images are prepared for a network, and that in words."""
    (means, stds), whose = _scale(origin, mean, std)
    try:
        size, resize = _sizes(origin, size, resize)
        images = Images(size, resize, means, stds, batch_size)
    except ValueError as error:
        raise EquipoiseError(str(error)) from None
    if whose is None:
        statistics = measured(folder_batches(data, images, names))
        images, whose = replace(images, mean=statistics[0], std=statistics[1]), "measured on these images"
    cut = f"{size} × {size} pixels" + (f" out of a short side of {resize}" if resize and resize != size else "")
    shown_mean, shown_std = (", ".join(f"{x:.3f}" for x in values) for values in (images.mean, images.std))
    return images, f"Images are {cut}; mean {shown_mean} and standard deviation {shown_std} are {whose}."


def _sizes(origin: Origin, size: int | None, resize: int | None) -> tuple[int, int | None]:
    if size is None and origin.size is None and origin.wanted is not None and origin.wanted.size is not None:
        return origin.wanted.size, frame_of_photographs(origin.wanted.size, resize).resize
    size = size or origin.size
    if size is None:
        raise EquipoiseError(
            "say with --size how many pixels wide and high the images are that the network was trained on"
        )
    return size, resize


def _scale(
    origin: Origin, mean: str | None, std: str | None
) -> tuple[tuple[tuple[float, ...], tuple[float, ...]], str | None]:
    """Mean and standard deviation of each channel, and whose they are; None where they are still to be measured."""
    if (mean is None) != (std is None):
        raise EquipoiseError("--mean and --std go together")
    if mean is not None and std is not None:
        given = numbers("--mean", mean), numbers("--std", std)
        means, stds = (values * origin.channels if len(values) == 1 else values for values in given)
        if len(means) != origin.channels:
            raise EquipoiseError(f"--mean must have {origin.channels} numbers, one for each channel, not {shown(mean)}")
        return (means, stds), "as given"
    wanted = origin.wanted or IMAGENET
    scale = for_channels(wanted.mean, origin.channels), for_channels(wanted.std, origin.channels)
    if origin.wanted is None and (origin.model is not None or origin.channels == 1):
        return scale, None
    return scale, f"those of {wanted.source}"
