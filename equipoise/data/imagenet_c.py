"""ImageNet-C: ImageNet's test images corrupted in fifteen ways at five severities, in files."""

from __future__ import annotations

from pathlib import Path

from ..core.escaping import visible
from .corruptions import CORRUPTIONS, SEVERITIES
from .decode import DataError
from .names import listed

GROUPS = ("", "noise", "blur", "weather", "digital")  # the archives, each of which may have a folder of its own


def imagenet_c_folders(path: str | Path) -> dict[tuple[str, int], Path]:
    """The folder of each corruption at each severity, with one folder per class, for `load_further`.

    `path` holds ``gaussian_noise/1`` to ``jpeg_compression/5``, directly or in the folders of the archives
    (``noise/gaussian_noise/1``). The four further corruptions of the archive ``extra`` are no part of the benchmark.
    `equipoise.analysis.mean_corruption_error` makes one number of the error rates there, relative to AlexNet's.

    Reference: Hendrycks, Dietterich. Benchmarking Neural Network Robustness to Common Corruptions and Perturbations.
    ICLR 2019.
    """
    base = Path(path).expanduser()
    found = {(name, severity): _folder(base, f"{name}/{severity}") for name in CORRUPTIONS for severity in SEVERITIES}
    lost = [f"{name}/{severity}" for (name, severity), folder in found.items() if folder is None]
    if lost:
        raise DataError(
            f"{visible(base)} lacks {len(lost)} of the {len(found)} folders of ImageNet-C: {listed(lost, 5)}; unpack "
            "noise.tar, blur.tar, weather.tar and digital.tar there, which its authors give away on Zenodo"
        )
    return {key: folder for key, folder in found.items() if folder is not None}


def _folder(base: Path, name: str) -> Path | None:
    return next((place for group in GROUPS if (place := base / group / name).is_dir()), None)
