"""How the processes that torchrun started find each other.

torchrun starts a failed training again with the server of keys it had, and PyTorch looks there for the addresses of the
others under the same keys as before: it may find those of processes that are dead, and wait for them for half an hour.
Ours agree on a name that no earlier start had, and write their addresses under it.
"""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import uuid4

from torch import distributed
from torch.distributed.constants import default_pg_timeout
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from ...core import EquipoiseError


def meet(backend: str) -> None:
    """Make the process group of all that were started together."""
    store, rank, size = next(rendezvous("env://"))
    name = agreed_name(store, rank, size)
    distributed.init_process_group(backend, store=PrefixStore(name, store), rank=rank, world_size=size)


def agreed_name(store: Store, rank: int, size: int, patience: timedelta = default_pg_timeout) -> str:
    """The first process's own name, which it tells whoever it finds in the store until the others have all heard it.

    Whoever was there in an earlier start is told too, and says nothing. By default it waits as long as PyTorch would.
    """
    own = uuid4().hex
    if rank > 0:
        store.set(f"equipoise/here/{rank}", own)
        name = store.get(f"equipoise/answer/{own}").decode()  # waits for it
        store.set(f"equipoise/heard/{name}/{rank}", "")
        return name
    missing, told = set(range(1, size)), set[str]()
    until = time.monotonic() + patience.total_seconds()
    while missing:
        if time.monotonic() > until:
            came = f"{size - len(missing)} of {size} processes came within {patience}"
            raise EquipoiseError(f"{came}; of those that did not, the first is number {min(missing)}: see why it ended")
        found = [store.get(key).decode() for key in map("equipoise/here/{}".format, missing) if store.check([key])]
        for other in set(found) - told:
            store.set(f"equipoise/answer/{other}", own)
        told.update(found)
        missing = {other for other in missing if not store.check([f"equipoise/heard/{own}/{other}"])}
        time.sleep(0.01)
    return own
