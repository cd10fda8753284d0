"""What goes wrong, in words: a mistake of the user or of the machine is one paragraph, never a traceback."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import NoReturn

from rich.markup import escape

from ..core.escaping import visible
from ..core.terminal import Terminal

# what a machine, rather than a mistake of ours, says to reading and writing, and the remedy
_SYSTEM = {
    errno.ENOENT: "it is not there",
    errno.EACCES: "you may not do that there; choose another folder, or ask for the right to",
    errno.EPERM: "you may not do that there; choose another folder, or ask for the right to",
    errno.EROFS: "the disk is read-only; choose another folder with --out",
    errno.ENOSPC: "the disk is full; make room and give the same command again",
    errno.EDQUOT: "your disk quota is used up; make room and give the same command again",
    errno.EISDIR: "it is a folder, and a file is needed",
    errno.ENOTDIR: "a file is where a folder is needed; choose another folder with --out",
    errno.EEXIST: "a file is in the way; choose another folder with --out",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "its links lead in a circle",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n) or lower --workers",
    errno.EIO: "the disk does not answer; see to it, or choose another folder with --out",
}


def told(error: OSError | MemoryError | RuntimeError) -> str | None:
    """The sentence for an error of the machine; None where it may be a mistake of ours."""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):  # in PyTorch's words
        return "the memory is not enough for this; ask for a smaller network, smaller batches or fewer workers"
    if not isinstance(error, OSError):
        return None
    ours = str(error.filename or "").startswith(str(Path(__file__).parents[1]))
    if error.filename is None or ours or error.errno not in _SYSTEM:
        return None
    return f"{error.filename}: {_SYSTEM[error.errno]}"


def refuse(sentence: str) -> NoReturn:
    shown = visible(sentence, lines=True)  # what the sentence repeats must not steer the terminal
    Terminal(stderr=True).print(f"[red]error:[/] {escape(shown)}", soft_wrap=True)
    sys.exit(2)
