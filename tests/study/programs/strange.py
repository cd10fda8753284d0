"""The command line with methods that do to a process what methods should not; `how` says what."""

import os
import signal
from pathlib import Path

import torch

from equipoise.core import register
from equipoise.losses import CrossEntropyLoss


def misbehave(how: str) -> None:
    if how.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, how))
    elif how == "exit":
        os._exit(0)
    elif how == "abort":
        os.abort()
    elif how == "assert":
        torch.zeros(1, device="cuda")[torch.ones(1, dtype=torch.int64, device="cuda")]  # an assertion on the device
    elif how == "once":
        marker = Path(os.environ["MARKER"])
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGSEGV)


@register("strange", kind="loss")
class Strange(CrossEntropyLoss):
    """Cross-entropy, and worse."""

    def __init__(self, how: str = "SIGILL", **given):
        super().__init__(**given)
        self.how = how

    def per_sample(self, logits, target):
        misbehave(self.how)
        return super().per_sample(logits, target)


@register("strange_posthoc", kind="posthoc")
class StrangePosthoc:
    """It ends the process when it is fitted."""

    def __init__(self, how: str = "exit"):
        self.how = how

    def fit(self, output, target):
        misbehave(self.how)

    def __call__(self, output):
        return output.logits


if __name__ == "__main__":
    from equipoise.__main__ import main

    main()
