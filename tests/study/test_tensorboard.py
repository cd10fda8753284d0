"""Event files, read back by a parser written from the formats' descriptions, and by TensorBoard where it is there."""

import math
import struct

import pytest

from equipoise.store import Record
from equipoise.study.run.tensorboard import EventFile, TensorBoard, crc32c, framed

CURVES = {"train_loss": [2.0, 1.0, 0.5], "valid_accuracy": [0.25, None, 0.75]}


def slow_crc32c(data):
    """Bit by bit, straight from the polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            top = (crc ^ byte >> bit) & 1
            crc = (crc >> 1) ^ (0x82F63B78 * top)
    return crc ^ 0xFFFFFFFF


def unmasked(masked):
    turned = (masked - 0xA282EAD8) % 2**32
    return (turned << 15 | turned >> 17) % 2**32


def messages(data):
    """The messages of a file of records, with every checksum verified."""
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        (check,) = struct.unpack("<I", data[8:12])
        assert unmasked(check) == slow_crc32c(data[:8])
        message = data[12 : 12 + length]
        (check,) = struct.unpack("<I", data[12 + length : 16 + length])
        assert unmasked(check) == slow_crc32c(message)
        yield message
        data = data[16 + length :]


def number(data):
    value, place = 0, 0
    while True:
        byte = data[place]
        value |= (byte & 127) << 7 * place
        place += 1
        if byte < 128:
            return value, data[place:]


def fields(message):
    """(place, value) of each field of a protocol-buffers message."""
    while message:
        head, message = number(message)
        place, kind = head >> 3, head & 7
        if kind == 0:
            value, message = number(message)
        elif kind == 2:
            length, message = number(message)
            value, message = message[:length], message[length:]
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[kind]
            value, message = struct.unpack(form, message[:size])[0], message[size:]
        yield place, value


def read(folder):
    """Version, the steps at which sessions started, and (wall time, step, values by tag)."""
    version, starts, steps = None, [], []
    for path in sorted(folder.glob("*tfevents*")):
        for message in messages(path.read_bytes()):
            event = dict(fields(message))
            version = event.get(3, version)
            if 7 in event:
                assert dict(fields(event[7])) == {1: 1}
                starts.append(event[2])
            if 5 in event:
                values = [dict(fields(value)) for place, value in fields(event[5]) if place == 1]
                steps.append((event[1], event[2], {v[1].decode(): v[2] for v in values}))
    return version, starts, steps


@pytest.mark.parametrize("data", [b"", b"a", b"123456789", bytes(range(256)) * 3])
def test_checksum(data):
    assert crc32c(data) == slow_crc32c(data)
    assert list(messages(framed(data))) == [data]


def test_what_is_written_can_be_read(tmp_path):
    file = EventFile(tmp_path / "run")
    file.add(1, {"train_loss": 0.5, "größe": 2.0}, wall_time=1000.25)
    file.add(300, {"train_loss": math.nan}, wall_time=1001.5)
    version, starts, steps = read(tmp_path / "run")
    assert (version, starts) == (b"brain.Event:2", [1])
    assert steps[0] == (1000.25, 1, {"train_loss": 0.5, "größe": 2.0})
    assert steps[1][:2] == (1001.5, 300) and math.isnan(steps[1][2]["train_loss"])


def test_a_run_that_goes_on_says_where(tmp_path):
    """A session's start tells a reader to drop the steps that a killed process had written from there on."""
    for epochs in ((1, 2, 3), (3, 4)):
        board = TensorBoard(tmp_path)
        for epoch in epochs:
            board.epoch("plain", 0, epoch, {"train_loss": 1 / epoch})
    _, starts, steps = read(board.path("plain", 0))
    assert starts == [1, 3]
    assert [step for _, step, _ in steps] == [1, 2, 3, 3, 4]


def record(**changes):
    content = {
        "key": "k", "recipe": {}, "state": "finished", "class_names": (), "class_counts": (), "data": "",
        "device": "cpu", "parameters": 1, "seconds": 30.0, "ended": "1970-01-01T00:01:40+00:00", "versions": {},
        "curves": CURVES,
    }  # fmt: skip
    return Record(**content | changes)


def test_a_finished_run_is_written_from_its_record_once(tmp_path):
    board = TensorBoard(tmp_path)
    for _ in range(2):
        board.finished("plain", 3, record())
    board.finished("corrected", 3, record(curves={}))
    folder = tmp_path / "plain" / "seed 3"
    assert len(list(folder.iterdir())) == 1
    assert not (tmp_path / "corrected").exists()
    assert read(folder)[2] == [
        (80.0, 1, {"train_loss": 2.0, "valid_accuracy": 0.25}),
        (90.0, 2, {"train_loss": 1.0}),
        (100.0, 3, {"train_loss": 0.5, "valid_accuracy": 0.75}),
    ]


@pytest.mark.parametrize("name", ["../../out", "a/b", "..", ".", "focal(gamma=2.0)", "ζ\x00"])
def test_no_name_leaves_the_folder(tmp_path, name):
    board = TensorBoard(tmp_path / "inside")
    board.epoch(name, 0, 1, {"x": 1.0})
    assert board.path(name, 0).resolve().parent.parent == (tmp_path / "inside").resolve()
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]


def test_tensorboard_reads_it(tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="no tensorboard here")
    TensorBoard(tmp_path).finished("plain", 0, record())
    accumulator = loader.EventAccumulator(str(tmp_path / "plain" / "seed 0")).Reload()
    assert [(e.step, e.value) for e in accumulator.Scalars("train_loss")] == [(1, 2.0), (2, 1.0), (3, 0.5)]
