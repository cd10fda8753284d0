"""The command line, thin: it reads what was asked, calls the parts, and says how it went. One file for each family.

Exit codes: 0 all well; 1 some runs failed, some images could not be read, a strict audit found something serious, or a
number did not come out again; 2 a mistake in what was asked, told in words; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import io
import sys

from ..core import EquipoiseError

# they add their commands, in the order of --help
from . import audit, board, combine, compare, deploy, explain, improve, reproduce, results, run, shards, tune  # noqa: F401
from .app import app
from .errors import refuse, told

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a user's mistake is one paragraph, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file's name may be no text, a terminal no Unicode
    try:
        app()
    except EquipoiseError as error:
        refuse(str(error))
    except (OSError, MemoryError, RuntimeError) as error:
        if (sentence := told(error)) is None:
            raise
        refuse(sentence)
    except KeyboardInterrupt:
        sys.exit(130)
