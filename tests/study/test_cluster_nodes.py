"""What a node of a cluster has, without a cluster: its folders, its images, its address and its software."""

import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from PIL import Image

from equipoise.core import EquipoiseError
from equipoise.data import forget_cached, keep_set, load_task
from equipoise.data import load as load_file
from equipoise.study import How
from equipoise.study.run.cluster import connection, workplace
from equipoise.study.run.cluster.connection import _check_address
from equipoise.study.run.cluster.facts import differences, facts
from equipoise.study.run.cluster.order import put_images

# -- folders of a node -------------------------------------------------------------------------------------------------


def test_packs_share_images_and_the_next_driver_clears_away(tmp_path, monkeypatch):
    monkeypatch.setattr(workplace.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(workplace, "_held", [])
    workplace._entered.cache_clear()
    with workplace.work_in("one") as store, workplace.work_in("one") as other:
        assert store.path != other.path
        (store.path / "shared" / "images").write_text("x")
        assert (other.path / "shared" / "images").read_text() == "x"
    assert not store.path.exists()
    folders = next(tmp_path.glob("equipoise-*"))
    with workplace.work_in("two"):
        assert (folders / "one" / "shared" / "images").exists(), "its process lives"
    for lock in workplace._held:
        lock.close()  # as the system does when a process ends
    with workplace.work_in("three"):
        assert {p.name for p in folders.iterdir() if p.is_dir()} == {"three"}
    workplace.leave("three")
    assert not any(p.is_dir() for p in folders.iterdir())
    workplace._entered.cache_clear()
    workplace._held.pop().close()


# -- sets of images ----------------------------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(12):
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("through", [None, lambda source: source.in_memory()], ids=["images", "features"])
def test_a_set_can_be_used_where_its_files_are_not(photos, tmp_path, through):
    name = f"folder(path='{photos}', size=8)"
    here = load_task(name, through=through)
    assert keep_set(name, here.content, tmp_path / "cache", most=10) is None, "too large to be sent"
    folder = keep_set(name, here.content, tmp_path / "cache", most=10**6)
    files = {path.name: np.fromfile(path, np.uint8) for path in folder.iterdir()}
    photos.rename(tmp_path / "elsewhere")
    put_images(tmp_path / "node" / folder.name, lambda: files)
    put_images(tmp_path / "node" / folder.name, lambda: pytest.fail("it is there"))
    load_file._read.cache_clear()
    there = load_task(name, content=here.content, cache=tmp_path / "node", through=through)
    assert there.fingerprint == here.fingerprint
    for split in ("train", "valid", "test"):
        one, other = getattr(here, split), getattr(there, split)
        assert torch.equal(one.images[:], other.images[:]) and torch.equal(one.labels, other.labels)
    forget_cached(tmp_path / "node")
    assert not (tmp_path / "node" / folder.name).exists()


# -- addresses and software --------------------------------------------------------------------------------------------


def test_an_address_that_does_not_answer_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr(connection, "SECONDS", 0.2)
    for address in ("127.0.0.1:9", "nowhere.invalid:6379", "127.0.0.1:port"):
        with pytest.raises(EquipoiseError, match=rf"no Ray cluster answers at {address}.*ray start --head"):
            _check_address(address)
    with pytest.raises(EquipoiseError, match="run equipoise on one of its machines"):
        _check_address("ray://10.0.0.1:10001")


def test_a_port_where_something_else_listens_is_told_soon(monkeypatch):
    monkeypatch.setattr(connection, "SECONDS", 0.2)
    no_answer = pytest.raises(EquipoiseError, match=r"no Ray cluster answers at .* \(timed out\)")
    with socket.create_server(("127.0.0.1", 0)) as silent, no_answer:
        _check_address(f"127.0.0.1:{silent.getsockname()[1]}")
    monkeypatch.setattr(connection, "SECONDS", 5.0)
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet():
            with other.accept()[0] as line:
                line.sendall(b"220 a mail server\r\n")

        greeter = threading.Thread(target=greet)
        greeter.start()
        with pytest.raises(EquipoiseError, match="what listens there is not Ray"):
            _check_address(f"127.0.0.1:{other.getsockname()[1]}")
        greeter.join()


def test_an_address_needs_the_engine():
    with pytest.raises(EquipoiseError, match="add --engine ray"):
        How.on("cpu", address="auto")
    with pytest.raises(EquipoiseError, match="engine"):
        How.on("cpu", engine="roy")


def test_differences_name_both_versions():
    ours = facts()
    assert ours["torch"] == torch.__version__.partition("+")[0]
    assert ours["Python"] == ".".join(map(str, sys.version_info[:2]))
    assert not differences(ours, dict(ours))
    told = differences({"torch": "2.13.0", "ray": "2.60.0"}, {"torch": "2.6.0", "ray": "2.60.0"})
    assert told == "torch 2.6.0 (here 2.13.0)"


def test_what_watches_over_a_worker_does_without_pytorch():
    """It would take each process of a node seconds to import, before its worker does so once more."""
    code = "import sys, equipoise.study.run.cluster.connection; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
