"""Constraints for pip: the oldest version that pyproject.toml allows of each package that a user needs.

    python .ci/oldest.py > oldest.txt

What torchvision and timm allow is left to them: they follow the PyTorch that is installed.
"""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
FOR_US = ("zoo", "all", "docs", "dev")  # extras of what is ours alone, or has no bound


def oldest() -> list[str]:
    extras = PROJECT["optional-dependencies"]
    wanted = PROJECT["dependencies"] + [r for extra in extras if extra not in FOR_US for r in extras[extra]]
    return sorted(re.sub(r"(\[.*\])?>=", "==", requirement) for requirement in wanted)


if __name__ == "__main__":
    print(*oldest(), sep="\n")
