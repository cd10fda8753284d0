"""Ten lines that use an exported model without Equipoise."""

from __future__ import annotations

from pathlib import Path

from .model import TrainedModel

_OPEN = """\
image = ImageOps.exif_transpose(Image.open("photo.jpg")).convert("{mode}")
side, (width, height) = min(image.size) * {size} / {resize}, image.size
box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
pixels = np.asarray(image.resize(({size}, {size}), Image.Resampling.BILINEAR, box)).reshape({size}, {size}, {channels})
images = pixels[None]{transpose}  # uint8, any number of them"""

_RUN = {
    "onnx": (
        "import onnxruntime",
        "session = onnxruntime.InferenceSession({file})\n"
        '(probabilities,) = session.run(None, {{"images": np.ascontiguousarray(images)}})',
    ),
    "torch_export": (
        "import torch",
        "model = torch.export.load({file}).module()\nprobabilities = model(torch.tensor(images)).detach().numpy()",
    ),
    "torchscript": (
        "import torch",
        "model = torch.jit.load({file})\nprobabilities = model(torch.tensor(images)).detach().numpy()",
    ),
}

_WEIGHTS = """\
import torch
network = ...  # {network}, whose weights have the names that are in the file
network.load_state_dict(torch.load({file}, weights_only=True))
mean, std = torch.tensor({mean}), torch.tensor({std})
images = torch.zeros(1, {channels}, {size}, {size}, dtype=torch.uint8)  # yours
with torch.no_grad():
    logits = network.eval()((images / 255 - mean[:, None, None]) / std[:, None, None])
names = {names}
print(names[logits[0].argmax()])"""


def script_for(model: TrainedModel, to: str, path: Path, layout: str = "nhwc") -> str:
    """A program that names the class of photo.jpg by the file at `path`, which `export` wrote."""
    it, names = model.description, list(model.class_names)
    frame, channels = it.preprocessing.frame, it.preprocessing.channels
    if to == "state_dict":
        return _WEIGHTS.format(
            network=f"{it.recipe['model']} with the norm {it.recipe['norm']} and the head {it.recipe['head']}",
            file=repr(str(path)),
            mean=list(it.preprocessing.mean),
            std=list(it.preprocessing.std),
            channels=channels,
            size=frame.size,
            names=names,
        )
    imported, run = _RUN[to]
    opened = _OPEN.format(
        mode="L" if channels == 1 else "RGB",
        size=frame.size,
        resize=frame.resize or frame.size,
        channels=channels,
        transpose="" if layout == "nhwc" else ".transpose(0, 3, 1, 2)",
    )
    return "\n".join(
        [
            "import numpy as np",
            imported,
            "from PIL import Image, ImageOps",
            opened,
            run.format(file=repr(str(path))),
            f"names = {names}",
            "print(names[probabilities[0].argmax()], probabilities[0].max())",
        ]
    )
