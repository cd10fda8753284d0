"""What became of a process or a run, in words: signals by their names, and want of memory told from other errors."""

from __future__ import annotations

import errno
import signal

# of a RuntimeError: PyTorch's allocators, cuBLAS and cuDNN say it in no other way
_MEMORY_WORDS = ("out of memory", "not enough memory", "allocate memory", "ALLOC_FAILED")
_HINTS = {
    signal.SIGKILL: "memory had run out, perhaps: fewer --workers or a smaller batch_size may help",
    signal.SIGILL: "it used an instruction that this processor has not, or may not use",
}


def end_of(exitcode: int) -> str:
    """How a process ended.

    >>> end_of(-4), end_of(3)
    ('was killed by SIGILL (illegal instruction)', 'ended with exit code 3')
    """
    if exitcode >= 0:
        return f"ended with exit code {exitcode}"
    try:
        number = signal.Signals(-exitcode)
    except ValueError:  # a real-time signal has no name
        return f"was killed by signal {-exitcode}"
    return f"was killed by {number.name} ({(signal.strsignal(number) or 'unknown').lower()})"


def hint_for(exitcode: int) -> str:
    """What may be behind it."""
    return _HINTS.get(-exitcode, "something in the method, or in a library it uses, ends the process")  # type: ignore[call-overload]


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether `error`, or what caused it, is want of memory: that says nothing about a method.

    >>> ran_out_of_memory(MemoryError()), ran_out_of_memory(ValueError("memory"))
    (True, False)
    """
    import torch  # a process that only watches over another has no need of it, and it takes seconds

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError | torch.OutOfMemoryError):
            return True
        if isinstance(cause, OSError) and cause.errno == errno.ENOMEM:
            return True
        if isinstance(cause, RuntimeError) and any(words in str(cause) for words in _MEMORY_WORDS):
            return True
        cause = cause.__cause__
    return False


def broke_the_device(error: BaseException) -> bool:
    """Whether CUDA has failed: then nothing works any more in that process, for this run or another."""
    return isinstance(error, RuntimeError) and "CUDA error" in str(error)
