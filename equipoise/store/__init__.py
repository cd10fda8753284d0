"""5 · Records: what came out of each run, and the folder that keeps them."""

from .record import SCHEMA, Record, check_schema
from .store import Store, explained, now

__all__ = ["SCHEMA", "Record", "Store", "check_schema", "explained", "now"]
