"""An improvement as files: what was found, the weights, and a script that uses them without this package."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import __version__
from ..core import EquipoiseError
from ..core.extras import require
from ..core.files import write_whole
from .affine import CorrectedLogits
from .improvement import Improvement
from .networks import Origin

SCHEMA = 1
UNKNOWN = ("network = ...  # make the network here, as for training",)

# Weighing of examples by PyTorch's own batch norms, as `equipoise.norms.set_example_weight` does it.
WEIGHING = '''

def weigh(norm, inputs, output, alpha=notes["alpha"]):
    """The example has the share alpha in the statistics that normalize it."""
    x, over = inputs[0], tuple(range(2, inputs[0].dim()))
    shape = (-1, *(1 for _ in over))
    mean, var = norm.running_mean.view(shape), norm.running_var.view(shape)
    own_mean, own_var = (x.mean(over, keepdim=True), x.var(over, correction=0, keepdim=True)) if over else (x, 0 * x)
    var = alpha * own_var + (1 - alpha) * var + alpha * (1 - alpha) * (own_mean - mean) ** 2
    x = (x - alpha * own_mean - (1 - alpha) * mean) / (var + norm.eps).sqrt()
    return x if norm.weight is None else x * norm.weight.view(shape) + norm.bias.view(shape)


for module in network.modules():
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
        module.register_forward_hook(weigh)
'''
WEIGHING_OURS = """
from equipoise.norms import set_example_weight  # it knows norms that are not PyTorch's own

set_example_weight(network, notes["alpha"])
"""

FUNCTION = '''

@torch.no_grad()
def probabilities(x):
    """Inputs (N, ...), normalized as in training -> probabilities (N, classes)."""
    return {}.softmax(1)
'''

IMAGES = '''
how = notes["images"]
size, resize = how["size"], how["resize"] or how["size"]
edge = (resize - size) // 2


def inputs(path):
    """An image file -> (1, channels, size, size)."""
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGB" if len(how["mean"]) == 3 else "L")
    image = ImageOps.fit(image, (resize, resize), Image.Resampling.BILINEAR)
    pixels = np.asarray(image).reshape(resize, resize, -1)[edge : edge + size, edge : edge + size] / 255
    return torch.from_numpy((pixels - how["mean"]) / how["std"]).permute(2, 0, 1)[None].float()


for path in sys.argv[1:]:
    p = probabilities(inputs(path))[0]
    print(path, notes["class_names"][int(p.argmax())], f"{p.max():.3f}")
'''


def write_improvement(improvement: Improvement, folder: Path, origin: Origin | None = None) -> Path:
    """improve.json always; if it helped, also weights.safetensors (or the exported program) and use.py."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen, network = improvement.chosen, improvement.network
    around = isinstance(network, CorrectedLogits)
    notes: dict[str, Any] = {"schema": SCHEMA, **improvement.plain()}
    if improvement.helped and chosen is not None:
        notes["alpha"] = chosen.alpha
        notes["scale"], notes["offset"] = chosen.correction.scale.tolist(), chosen.correction.offset.tolist()
        notes["logits"] = (
            "multiply by scale and add offset" if around else "the weights have scale and offset in their last layer"
        )
    notes["versions"] = {"equipoise": __version__, "torch": torch.__version__}
    for stale in {"weights.safetensors", "use.py", "model/model.json"} if (folder / "improve.json").exists() else ():
        (folder / stale).unlink(missing_ok=True)  # of an earlier improvement
    _write_text(folder / "improve.json", json.dumps(notes, indent=1, ensure_ascii=False))
    if improvement.helped:
        _write_weights(network.network if isinstance(network, CorrectedLogits) else network, folder, origin)
        _write_text(folder / "use.py", script(improvement, origin))
    return folder


def _write_text(path: Path, text: str) -> None:
    """What UTF-8 cannot hold, as in names that are no text, becomes an escape that JSON and Python read."""
    write_whole(path, text.encode(errors="backslashreplace"))


def _write_weights(network: nn.Module, folder: Path, origin: Origin | None) -> None:
    if origin is not None and origin.exported is not None:
        shutil.copyfile(origin.exported, folder / origin.exported.name)
        return
    require("writing weights", "safetensors")
    from safetensors.torch import save

    # cloned, because safetensors refuses tensors that share memory
    state = {name: value.detach().cpu().contiguous().clone() for name, value in network.state_dict().items()}
    if not state:
        raise EquipoiseError("the network has no weights to write")
    write_whole(folder / "weights.safetensors", save(state))


def script(improvement: Improvement, origin: Origin | None) -> str:
    """Plain PyTorch that makes the improved network and gives the probabilities of images."""
    lines = UNKNOWN if origin is None else origin.lines
    exported = origin is not None and origin.exported is not None
    images = improvement.images is not None
    around = isinstance(improvement.network, CorrectedLogits)
    alpha = None if improvement.chosen is None else improvement.chosen.alpha
    head = [
        f'"""{improvement.sentence}"""\n',
        "import json\nimport sys\nfrom pathlib import Path\n",
        "import numpy as np\nimport torch\nfrom PIL import Image, ImageOps" if images else "import torch",
        *([] if exported else ["from safetensors.torch import load_file"]),
        '\nhere = Path(__file__).parent\nnotes = json.loads((here / "improve.json").read_text(encoding="utf-8"))',
        *lines,
    ]
    if not exported:
        head += ['network.load_state_dict(load_file(here / "weights.safetensors"))', "network.eval()"]
    body = "" if alpha is None else WEIGHING if _has_stock_norms(improvement.network) else WEIGHING_OURS
    logits = 'network(x) * torch.tensor(notes["scale"]) + torch.tensor(notes["offset"])' if around else "network(x)"
    function = FUNCTION.format(f"({logits})" if around else logits)
    return "\n".join(head) + "\n" + body + function + (f"\n{IMAGES}" if images else "")


def _has_stock_norms(network: nn.Module) -> bool:
    weighed = [module for module in network.modules() if getattr(module, "running_mean", None) is not None]
    return all(type(module).__name__.startswith("ExampleWeightedBatchNorm") for module in weighed)
