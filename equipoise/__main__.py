"""`equipoise`, also as `python -m equipoise`."""

import signal
import sys


def main() -> None:
    """The command line. Ctrl-C ends it at once and without a word, except where there is something to stop in order:
    PyTorch takes seconds to import, and Python's own way, an error anywhere in it, is a traceback or a crash."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .core.extras import MissingPackage, require

    try:
        require("the command equipoise", "typer", "rich")
    except MissingPackage as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    from .cli import main

    main()


if __name__ == "__main__":
    main()
