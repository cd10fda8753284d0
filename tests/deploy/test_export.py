"""Exported files are run as anyone would run them, with the batch size left open; the command line as it is used."""

import csv
import subprocess
import sys

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from equipoise import EquipoiseError
from equipoise.cli import app
from equipoise.deploy import export as exporting
from equipoise.deploy.export import export
from equipoise.deploy.scripts import script_for

from ..exporters import needs_onnx

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own, about its exporters


@pytest.mark.parametrize("method", ["ldam", "adjusted", "tau_norm", "weighing", "lws", "bbn", "head"])
def test_every_kind_of_method_can_be_scripted(results, tmp_path, task, method):
    model = results.model(method, seed=0, device="cpu")
    path = export(model, "torchscript", tmp_path / "model.pt", layout="nchw")
    images = task.test.images[:5]
    torch.testing.assert_close(torch.jit.load(path)(images), model(images), rtol=0, atol=1e-5)


@pytest.mark.parametrize("to", ["onnx", "torch_export", "torchscript"])
def test_the_lines_that_are_printed_run_without_equipoise(model, tmp_path, task, to, capsys, monkeypatch):
    if to == "onnx":
        needs_onnx()
    path = export(model, to, tmp_path / "it's the model")
    Image.fromarray(task.test.images[7, 0].numpy()).save(tmp_path / "photo.jpg", "PNG")
    script = script_for(model, to, path)
    assert len(script.splitlines()) <= 13 and "equipoise" not in script
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    name, probability = capsys.readouterr().out.split()
    wanted = model(task.test.images[7:8])[0]
    assert name == model.class_names[wanted.argmax()]
    assert float(probability) == pytest.approx(float(wanted.max()), abs=1e-3)


def test_weights_alone(results, tmp_path):
    plain = results.model("plain", seed=0, device="cpu")
    path = export(plain, "state_dict", tmp_path / "model.pt")
    weights = torch.load(path, weights_only=True)
    assert torch.equal(weights["head.weight"], plain.weights()["head.weight"])
    assert "load_state_dict" in script_for(plain, "state_dict", path)
    with pytest.raises(EquipoiseError, match="weights alone, and logit_adjust"):
        export(results.model("adjusted", seed=0, device="cpu"), "state_dict", tmp_path / "no.pt")
    assert not (tmp_path / "no.pt").exists()


def test_the_oldest_pytorch_writes_no_onnx_and_says_so(model, tmp_path, monkeypatch):
    needs_onnx(exporter=False)
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion("2.6.0+cpu"))
    with pytest.raises(EquipoiseError, match=r"needs PyTorch 2\.7 or newer, and this is 2\.6\.0.*torchscript"):
        export(model, "onnx", tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_what_cannot_be_exported_is_refused_with_the_reason(results, tmp_path):
    model = results.model("adjusted", seed=0, device="cpu")

    class Stubborn:
        def __call__(self, out):
            raise RuntimeError("no tracer may see this")

    made = exporting.TrainedModel

    def stubborn(*arguments):
        copy = made(*arguments)
        copy.classifier.posthoc = Stubborn()
        return copy

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "TrainedModel", stubborn)
        with pytest.raises(
            EquipoiseError, match="adjusted cannot be exported to torchscript: .*no tracer may see this"
        ):
            export(model, "torchscript", tmp_path / "model.pt")
    assert not list(tmp_path.iterdir())


def test_a_file_that_says_something_else_is_not_kept(model, tmp_path, monkeypatch):
    way = exporting.WAYS["torchscript"]
    other = exporting.Way(way.file, way.write, lambda *_: lambda images: torch.zeros(len(images), 10))
    monkeypatch.setitem(exporting.WAYS, "torchscript", other)
    with pytest.raises(EquipoiseError, match="off by .* nothing was written"):
        export(model, "torchscript", tmp_path / "model.pt")
    assert not list(tmp_path.iterdir())


def test_mistakes_are_told(model):
    with pytest.raises(EquipoiseError, match="'onxn'.*onnx"):
        export(model, "onxn")
    with pytest.raises(EquipoiseError, match="'nwhc'"):
        export(model, "torchscript", layout="nwhc")


def test_from_a_study_to_a_table(results, photos, tmp_path):
    folder, out = tmp_path / "model", tmp_path / "said.csv"
    made = CliRunner().invoke(app, ["export", str(results.store.path), "--method", "adjusted", "--out", str(folder)])
    assert made.exit_code == 0, made.output
    command = ["-m", "equipoise", "predict", folder, photos, "--top", "2", "--prior", "uniform", "--out", out]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # a file could not be read
    rows = list(csv.DictReader(out.open()))
    assert [row["image"].rsplit("/", 1)[1] for row in rows] == ["0.png", "1.png", "2.png", "2b.png"]
    assert float(rows[0]["probability"]) >= float(rows[0]["probability_2"]) > 0
    assert "none of PNG" in rows[3]["error"] and rows[3]["prediction"] == ""
    assert "3 images classified" in done.stderr and "2b.png" in done.stderr


def test_mistakes_on_the_command_line_are_told(model, photos, tmp_path):
    folder = str(model.save(tmp_path / "model"))
    for command, said in {
        ("predict", folder, str(photos), "--prior", "cat=1"): "no class 'cat'",
        ("predict", folder, str(photos), "--format", "xml"): "'xml'",
        ("predict", folder, str(photos), "--seed", "3"): "is one saved model",
        ("predict", folder, str(tmp_path / "model")): "no images",
        ("export", folder, "--to", "onxn"): "'onxn'",
    }.items():
        done = CliRunner().invoke(app, command)
        assert isinstance(done.exception, EquipoiseError) and said in str(done.exception)
