"""What was found out about this machine by trying, kept in the user's cache folder.

The first process to find it decides for all: what is measured comes out differently now and then, and two studies
of one machine should still compute alike.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch

from ...core.files import cache_folder

T = TypeVar("T")
VARIABLES = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")


def remembered(what: str, find: Callable[[], Any], read: Callable[[Any], T]) -> T:
    """What `find` gave, as JSON has it, when this machine was first asked for `what`; `read` refuses what is not that.

    Where the folder cannot be written to, it is found again each time.
    """
    file = cache_folder() / f"{what}-{_machine()}.json"
    known = _known(file, read)
    if known is None:
        value = find()
        with suppress(OSError):
            _write_first(file, json.dumps(value), read)
        known = _known(file, read)
    return read(value) if known is None else known


def _known(file: Path, read: Callable[[Any], T]) -> T | None:
    with suppress(OSError, ValueError, TypeError):
        return read(json.loads(file.read_text()))
    return None


def _write_first(file: Path, text: str, read: Callable[[Any], Any]) -> None:
    """Write the file unless another process has done so meanwhile; a damaged one is replaced."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    aside.write_text(text)
    try:
        os.link(aside, file)  # refused where there is a file
    except FileExistsError:
        if _known(file, read) is None:
            os.replace(aside, file)
    finally:
        aside.unlink(missing_ok=True)


def _machine() -> str:
    """The same as long as nothing changes that the answers depend on."""
    variables = [os.environ.get(name, "") for name in VARIABLES]
    facts = [_processor(), platform.release(), torch.__version__, *variables]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _processor() -> str:
    """The processor's model and what it announces."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        wanted = ("model name", "flags", "Features", "CPU part")
        return "\n".join(dict.fromkeys(line for line in lines if line.startswith(wanted)))
    return f"{platform.machine()} {platform.processor()}"
