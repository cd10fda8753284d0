"""`TrainedModel`: a trained network with all that is needed to use it, and the folder that keeps it.

FOLDER/model.json            the description, with its own checksum and that of the weights
FOLDER/weights.safetensors   the weights
FOLDER/README.md             the same for people
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from .. import __version__
from ..core import EquipoiseError, Output
from ..core.extras import require
from ..core.files import checksum, write_whole
from ..imbalance.prior import Prior, read_prior
from ..store import Damaged, explained
from ..store.checked_json import from_bytes, to_bytes
from ..store.damage import content_of, understood
from ..store.shapes import table, text
from ..train import Run
from .card import model_card
from .classifier import Classifier, all_weights
from .description import Description
from .folding import folded
from .preprocessing import Preprocessing
from .threads import in_threads

MODEL, WEIGHTS, CARD = "model.json", "weights.safetensors", "README.md"
_REMEDY = "copy the folder again, or save the model again from its study"


class Trained(Protocol):
    """What models can be taken from: `equipoise.Results`."""

    def model(self, method: str | None = None, seed: int | None = None) -> TrainedModel: ...


class TrainedModel:
    """A network and its weights, class names, preprocessing, correction and calibration, and what is known of it.

    `TrainedModel.of(results)` takes it out of a study, `save` and `load` keep it in a folder. It is called with uint8
    images (N, c, h, w) and gives probabilities (N, C); `equipoise.predict` also reads image files.
    """

    def __init__(
        self, description: Description, weights: Mapping[str, Tensor], device: torch.device | str = "cpu"
    ) -> None:
        self.description = description
        # channels last: up to twice as fast on a CPU
        self.classifier = Classifier(description, weights).to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @classmethod
    def of(cls, results: Trained, method: str | None = None, seed: int | None = None) -> TrainedModel:
        """The model of a run of a study; `Results.model` says which one where none is named."""
        return results.model(method, seed)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.description.class_names

    @property
    def preprocessing(self) -> Preprocessing:
        return self.description.preprocessing

    @property
    def device(self) -> torch.device:
        return self.classifier.mean.device

    def prior(self, given: Prior | None) -> Tensor | None:
        """Weights of the classes from what a user says of them; see `read_prior`."""
        return read_prior(given, self.class_names, self.description.class_counts)

    @torch.inference_mode()
    def __call__(self, images: Tensor, prior: Tensor | Sequence[float] | None = None) -> Tensor:
        """Probabilities (N, C) of uint8 images (N, c, h, w), where classes come as often as `prior` says."""
        weights = None if prior is None else torch.as_tensor(prior)
        given = self.preprocessing.checked(images).to(self.device)
        logits = in_threads(self._folded, given) if self.device.type == "cpu" else self.classifier(given)
        return self.probabilities(logits, weights)

    @cached_property
    def _folded(self) -> Classifier:
        """What is asked on a CPU; `classifier` keeps the weights as they were trained."""
        return folded(self.classifier).to(memory_format=torch.channels_last)

    def probabilities(self, logits: Tensor, prior: Tensor | None = None) -> Tensor:
        """Calibrated probabilities (N, C) of what the classifier gives."""
        counts = torch.tensor(self.description.class_counts)
        return self.description.calibration.probabilities(logits, counts, prior)

    def weights(self) -> dict[str, Tensor]:
        return all_weights(self.classifier.network)

    def save(self, folder: Path | str) -> Path:
        """Write the folder; one that is there is written over, file by file, model.json last."""
        require("a saved model", "safetensors")
        from safetensors.torch import save as to_safetensors

        folder, data = Path(folder), to_safetensors(self.weights())
        plain = {"made_by": __version__, **self.description.to_dict(), "files": {WEIGHTS: checksum(data)}}
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / WEIGHTS, data)
            write_whole(folder / CARD, model_card(self.description).encode("utf-8", "backslashreplace"))
            write_whole(folder / MODEL, to_bytes(plain))
        return folder

    @classmethod
    def load(cls, folder: Path | str, device: torch.device | str = "cpu") -> TrainedModel:
        """The model in a folder that `save` wrote; a file that is not what was written is an error with its name."""
        require("a saved model", "safetensors")
        from safetensors import SafetensorError
        from safetensors.torch import load as from_safetensors

        folder = Path(folder)
        if not is_model(folder):
            raise EquipoiseError(
                f"{folder} holds no model: {MODEL} is not there; 'equipoise export RUNS' makes such a folder"
            )
        description, sums = _read(folder / MODEL)
        data = content_of(folder / WEIGHTS, _REMEDY)
        if sums.get(WEIGHTS) != checksum(data):
            raise Damaged(folder / WEIGHTS, "its checksum does not match", _REMEDY)
        try:
            return cls(description, from_safetensors(data), device)
        except SafetensorError as error:
            raise Damaged(folder / WEIGHTS, f"it is not safetensors ({error})", _REMEDY) from None
        except RuntimeError as error:  # of load_state_dict
            raise Damaged(folder / WEIGHTS, f"it does not fit the network ({error})", _REMEDY) from None

    def __repr__(self) -> str:
        it = self.description
        return f"TrainedModel({it.method!r}, seed={it.seed}, {len(self.class_names)} classes, {it.recipe['model']!r})"


def is_model(folder: Path) -> bool:
    """Whether a folder is one that `TrainedModel.save` wrote."""
    return (folder / MODEL).exists()


@torch.no_grad()
def check_same(model: TrainedModel, run: Run, posthoc: Any) -> None:
    """Refuse a model that does not say what the run says of images, as a method may keep what no description has."""
    images = torch.randint(256, (8, *model.preprocessing.shape), generator=torch.Generator().manual_seed(0))
    images = images.to(model.device, torch.uint8)
    out = run.evaluated.eval().output(run.inputs(images))
    logits = run.objective.loss.link(out.logits.float())
    if posthoc is not None and not hasattr(posthoc, "change"):
        logits = posthoc(Output(logits, out.features))
    apart = float((logits.softmax(1) - model.classifier(images).softmax(1)).abs().max())
    if not apart < 1e-3:
        raise EquipoiseError(
            f"{model.description.method} cannot be taken out of its study: made again from its recipe and weights, its "
            f"probabilities differ by {apart:.2g} from those of the run"
        )


def _read(path: Path) -> tuple[Description, dict[str, str]]:
    with understood(path, _REMEDY):
        plain: Any = table(from_bytes(content_of(path, _REMEDY)))
        return Description.from_dict(plain), table(plain["files"], text)
