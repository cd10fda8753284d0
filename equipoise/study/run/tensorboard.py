"""Event files for TensorBoard, written without it: DIR/tensorboard/METHOD/seed N/.

A file is a row of records: length, checksum of the length, an `Event` message, checksum of the message. A message is
fields of protocol buffers: a number that holds place and type of the field, then its value.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from ...store import Record, explained

_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5  # wire types
_SESSION_START = b"\x08\x01"


class EventFile:
    """One run's event file; `add` appends the values of a step. It is not kept open: a study has many runs."""

    def __init__(self, folder: Path) -> None:
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{time.time_ns() // 1000:017d}.{socket.gethostname()}.{os.getpid()}"
        self.started = False
        self._append(_event(time.time(), 0, _field(3, _BYTES, b"brain.Event:2")))

    def add(self, step: int, scalars: Mapping[str, float], wall_time: float | None = None) -> None:
        """The values of a step. Of steps that an earlier, interrupted file of the run has too, these stand."""
        at = time.time() if wall_time is None else wall_time
        start = b"" if self.started else _event(at, step, _field(7, _BYTES, _SESSION_START))
        values = (_field(1, _BYTES, tag.encode()) + _field(2, _FLOAT, value) for tag, value in scalars.items())
        self._append(start + _event(at, step, _field(5, _BYTES, b"".join(_field(1, _BYTES, v) for v in values))))
        self.started = True

    def _append(self, events: bytes) -> None:
        with explained(self.path), self.path.open("ab") as file:
            file.write(events)


class TensorBoard:
    """The event files of a study's runs, each made when its run first tells something."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[Path, EventFile] = {}

    def epoch(self, method: str, seed: int, epoch: int, latest: Mapping[str, float]) -> None:
        """The newest value of each curve of a run under way."""
        path = self.path(method, seed)
        if path not in self.files:
            self.files[path] = EventFile(path)
        self.files[path].add(epoch, latest)

    def finished(self, method: str, seed: int, record: Record) -> None:
        """All curves of a run that was finished before anybody watched; nothing if it was watched."""
        path, epochs = self.path(method, seed), max(map(len, record.curves.values()), default=0)
        if not epochs or any(path.glob("*tfevents*")):
            return
        file, ended = EventFile(path), datetime.fromisoformat(record.ended).timestamp()
        for i in range(epochs):
            latest = {name: values[i] for name, values in record.curves.items() if i < len(values)}
            known = {name: value for name, value in latest.items() if value is not None}
            file.add(i + 1, known, ended - record.seconds * (epochs - 1 - i) / epochs)

    def path(self, method: str, seed: int) -> Path:
        """A method's name may hold anything; its folder's name stays inside `folder`."""
        name = quote(method, safe=" ()=,+")
        return self.folder / (f"%2E{name[1:]}" if name.startswith(".") else name) / f"seed {seed}"


def _event(wall_time: float, step: int, content: bytes) -> bytes:
    return framed(_field(1, _DOUBLE, wall_time) + _field(2, _VARINT, step) + content)


def framed(message: bytes) -> bytes:
    """A message with its length before it and checksums after both."""
    length = struct.pack("<Q", len(message))
    return length + struct.pack("<I", _masked(length)) + message + struct.pack("<I", _masked(message))


def _field(place: int, kind: int, value: float | bytes) -> bytes:
    head = _varint(place << 3 | kind)
    if isinstance(value, bytes):
        return head + _varint(len(value)) + value
    return head + (_varint(int(value)) if kind == _VARINT else struct.pack("<d" if kind == _DOUBLE else "<f", value))


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the high bit says that more follow.

    >>> _varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


_ROWS = _table()


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _ROWS[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> int:
    """The checksum turned and shifted, as the format asks: the data it covers may contain checksums."""
    crc = crc32c(data)
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF
