"""What is written: weights and a script that gives, by itself, what the improved network gives."""

import copy
import json
import runpy
import sys

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from equipoise.improvement import Images, improve
from equipoise.improvement.images import folder_batches
from equipoise.improvement.improving import corrected
from equipoise.improvement.networks import Origin
from equipoise.improvement.write import write_improvement
from equipoise.norms import GhostBatchNorm2d

from .conftest import small_network

LINES = ("from tests_network import make", "network = make()")


@pytest.fixture
def improved(trained, held_out, digits):
    return improve(trained, held_out, class_counts=digits.counts)


def with_alpha(found, network, alpha, head="8"):
    """The same improvement, with an example weight in it."""
    chosen = copy.copy(found.chosen)
    object.__setattr__(chosen, "alpha", alpha)
    changed = copy.copy(found)
    object.__setattr__(changed, "chosen", chosen)
    object.__setattr__(changed, "network", corrected(network, head, chosen))
    return changed


def probabilities(folder, monkeypatch, make):
    """What the written script computes."""
    module = type(sys)("tests_network")
    module.make = make
    monkeypatch.setitem(sys.modules, "tests_network", module)
    return runpy.run_path(str(folder / "use.py"))["probabilities"]


def test_the_weights_are_all_that_is_needed(improved, trained, digits, tmp_path):
    improved.save(tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["improve.json", "use.py", "weights.safetensors"]
    network = small_network().eval()
    network.load_state_dict(load_file(tmp_path / "out" / "weights.safetensors"))
    with torch.no_grad():
        if improved.chosen.alpha is None:
            torch.testing.assert_close(network(digits.test_x), improved.network(digits.test_x))
    notes = json.loads((tmp_path / "out" / "improve.json").read_text())
    assert notes["sentence"] == improved.sentence and notes["helped"] and len(notes["offset"]) == 10
    assert notes["scores"]["accuracy"]["before"]["low"] <= notes["scores"]["accuracy"]["before"]["value"]


@pytest.mark.parametrize("alpha", [None, 0.2])
@pytest.mark.parametrize("bias", [True, False])
def test_the_script_gives_what_the_network_gives(improved, trained, digits, tmp_path, monkeypatch, alpha, bias):
    network = copy.deepcopy(trained)
    if not bias:
        network[8].bias = None

    def make():
        made = small_network()
        if not bias:
            made[8].bias = None
        return made

    found = with_alpha(improved, network, alpha)
    write_improvement(found, tmp_path, Origin(network, LINES))
    with torch.no_grad():
        expected = found.network.eval()(digits.test_x).softmax(1)
    use = probabilities(tmp_path, monkeypatch, make)
    assert "equipoise" not in (tmp_path / "use.py").read_text()
    torch.testing.assert_close(use(digits.test_x), expected, atol=1e-5, rtol=1e-4)


def test_the_script_weighs_our_norms_by_our_function(improved, digits, tmp_path, monkeypatch):
    torch.manual_seed(0)

    def make():
        return small_network(lambda c: GhostBatchNorm2d(c, ghost_size=16))

    network = make()
    network(digits.x)
    found = with_alpha(improved, network.eval(), 0.2)
    write_improvement(found, tmp_path, Origin(network, LINES))
    with torch.no_grad():
        expected = found.network(digits.test_x).softmax(1)
    torch.testing.assert_close(
        probabilities(tmp_path, monkeypatch, make)(digits.test_x), expected, atol=1e-5, rtol=1e-4
    )


def test_of_an_exported_network_the_program_is_kept(trained, digits, tmp_path, held_out):
    from equipoise.improvement.networks import load_network

    program = torch.export.export(trained, (digits.test_x[:4],))
    torch.export.save(program, tmp_path / "net.pt2")
    origin = load_network(tmp_path / "net.pt2", None, 10)
    found = improve(origin.network, held_out)
    assert found.helped and len(found.left_out) == 2
    write_improvement(found, tmp_path / "out", origin)
    assert (tmp_path / "out" / "net.pt2").read_bytes() == (tmp_path / "net.pt2").read_bytes()
    use = runpy.run_path(str(tmp_path / "out" / "use.py"))["probabilities"]
    with torch.no_grad():
        expected = found.chosen.correction(trained(digits.test_x[:5])).softmax(1)
    torch.testing.assert_close(use(digits.test_x[:5]), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "images", [Images(24), Images(24, 32), Images(24, 32, (0.4,), (0.2,))], ids=["square", "cut", "grey"]
)
def test_the_script_reads_images_as_the_folder_was_read(improved, tmp_path, monkeypatch, images):
    from PIL import Image

    torch.manual_seed(0)
    smooth = torch.nn.functional.interpolate(torch.rand(1, 3, 5, 6), (90, 130), mode="bicubic").clamp(0, 1)[0]
    (tmp_path / "photos" / "a").mkdir(parents=True)
    (tmp_path / "photos" / "b").mkdir()
    path = tmp_path / "photos" / "a" / "photo.png"
    Image.fromarray((255 * smooth).byte().permute(1, 2, 0).numpy()).save(path)
    found = copy.copy(improved)
    object.__setattr__(found, "images", images)
    write_improvement(found, tmp_path / "out", Origin(found.network, LINES))
    monkeypatch.setattr(sys, "argv", ["use.py"])
    probabilities(tmp_path / "out", monkeypatch, small_network)
    ours = next(iter(folder_batches(tmp_path / "photos", images)))[0]
    theirs = runpy.run_path(str(tmp_path / "out" / "use.py"))["inputs"](path)
    assert (ours - theirs).abs().max() <= 2.01 / 255 / min(images.std)  # rounding, of sides too


def test_an_earlier_improvement_is_not_left_beside_a_report_of_none(improved, tmp_path):
    improved.save(tmp_path)
    no = copy.copy(improved)
    object.__setattr__(no, "helped", False)
    no.save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["improve.json"]


def test_where_nothing_helped_the_report_alone_is_written(tmp_path):
    torch.manual_seed(1)
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 3))
    found = improve(network, [(torch.randn(120, 4), torch.randint(3, (120,)))])
    found.save(tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["improve.json"]
    assert json.loads((tmp_path / "out" / "improve.json").read_text())["sentence"].startswith("Nothing helped")


def test_the_script_is_valid_without_a_known_origin(improved, tmp_path):
    improved.save(tmp_path)
    compile((tmp_path / "use.py").read_text(), "use.py", "exec")
