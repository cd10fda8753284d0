"""Which software a machine has. Sent to nodes as it is, because theirs may be another: it imports nothing of ours."""

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

MISSING = "not installed"


def facts() -> dict[str, str]:
    """What must be the same on all machines: Python but for its last number, Ray, PyTorch but for its build, and our
    own files to the letter."""
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "ray": _version("ray"),
        "torch": _version("torch").partition("+")[0],
        "equipoise": _equipoise(),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return MISSING


def _equipoise() -> str:
    """A hash of the package's source, for two checkouts can have one version."""
    spec = find_spec("equipoise")
    if spec is None or spec.origin is None:
        return MISSING
    folder, digest = Path(spec.origin).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return f"{_version('equipoise')} ({digest.hexdigest()[:8]})"


def differences(ours: dict[str, str], theirs: dict[str, str]) -> str:
    """What is not the same there, in words; empty where all is."""
    return ", ".join(f"{name} {theirs[name]} (here {ours[name]})" for name in ours if theirs[name] != ours[name])
