"""The same work for many image files: by threads or, where there are many files and cores, by a process per core."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from torch.utils.data import DataLoader, Dataset

from ..core.processors import core_count

MANY = {"fork": 2**10, "spawn": 2**15}  # files from which on processes pay, by how these start: copied, or anew
FEW_CORES = 4  # below so many, threads do as well

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(work: Callable[[Item], Result], items: Sequence[Item], files: int, threads: int) -> list[Result]:
    """`work` of each item, in their order. Together they are so many `files`; for few, so many `threads` do it.

    Python's lock holds threads up where there are many, so that processes outrun them. These are copies of this one
    where the system makes such, which takes milliseconds. So `work` may read files and call Pillow, numpy and kernels
    without threads: what else runs here does not go on there.
    """
    may_start = not multiprocessing.current_process().daemon  # Python allows those, such as workers, no processes
    if may_start and core_count() >= FEW_CORES and files >= MANY[_start()]:
        return _by_processes(work, items)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


def _start() -> str:
    return "fork" if sys.platform == "linux" else "spawn"


def _by_processes(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    loader = DataLoader(
        _Results(work, items),
        batch_size=None,
        num_workers=core_count(),
        multiprocessing_context=_start(),
        collate_fn=_as_it_is,
        worker_init_fn=_begin_worker,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork", category=DeprecationWarning)  # of threads: see above
        return list(loader)


class _Results(Dataset[Result], Generic[Item, Result]):
    """Result i is made when it is asked for."""

    def __init__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> None:
        self.work, self.items = work, items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Result:
        return self.work(self.items[i])


def _begin_worker(worker: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits for this one
    warnings.simplefilter("ignore")  # what is wrong with a file is said by its result


def _as_it_is(result: Any) -> Any:
    return result
