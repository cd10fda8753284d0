"""Real networks of timm and torchvision, where they are installed: norms, heads and mixings of a recipe act on them."""

import importlib
import importlib.util
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import equipoise
from equipoise.core import EquipoiseError
from equipoise.deploy.export import export
from equipoise.mixing import MajorFeatureWeakening
from equipoise.models import CosineHead, FreshHead, create_model, from_torch
from equipoise.norms import GhostBatchNorm2d
from equipoise.study import Listener
from equipoise.train import Recipe, embed

CLASSES = 5
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# network, side of an image, a site inside it, millions of parameters for 1000 classes as the papers give them
OF_BOTH = (
    ("resnet18", 64, "body.layer1", 11.7),
    ("resnext50_32x4d", 64, "body.layer2", 25.0),
    ("densenet121", 64, "body.features.denseblock2", 8.0),
    ("inception_v3", 96, "body.Mixed_5d", 23.8),  # the supplement's 24 M: without the auxiliary classifier
)
NETWORKS = (
    *((f"{library}/{name}", *rest) for library in ("torchvision", "timm") for name, *rest in OF_BOTH),
    ("torchvision/mobilenet_v2", 64, "body.features.3", 3.5),
    ("torchvision/shufflenet_v2_x0_5", 64, "body.stage2", 1.4),
    ("torchvision/efficientnet_b4", 64, "body.features.2", 19.3),
    ("torchvision/googlenet", 64, "body.inception3a", 6.6),
    ("timm/mobilenetv2_100", 64, "body.blocks.1", 3.5),
    ("timm/efficientnet_b4", 64, "body.blocks.1", 19.3),
)
MEAN, STD = (torch.tensor(x)[:, None, None] for x in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))  # ImageNet's
SQUEEZENET = ("torchvision/squeezenet1_1", 64, "body.features.4", 1.24)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # the libraries' own
]


def skip_without(text):
    """Wheels for another build of PyTorch lack two operators of object detection, which nothing here uses."""
    library = text.partition("/")[0]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision, which timm needs, is not installed")
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        missing = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            missing.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    try:
        importlib.import_module(library)
    except Exception as error:
        pytest.skip(f"{library} does not import here: {error}")


def skip_without_workers(text):
    """The processes of a study import the library by themselves."""
    skip_without(text)
    library = text.partition("/")[0]
    tried = subprocess.run([sys.executable, "-c", f"import {library}"], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"{library} does not import in a new process: {tried.stderr.strip().splitlines()[-1]}")


def made(recipe):
    torch.manual_seed(0)
    return create_model(recipe.model, CLASSES, norm=recipe.norm, head=recipe.head).to(DEVICE)


def trained_one_step(network, side, mixing=None, site=None):
    """The network after a step of SGD; its output before."""
    x, target = torch.randn(4, 3, side, side, device=DEVICE), torch.tensor([0, 1, 2, 3], device=DEVICE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    network.train()
    if mixing is None:
        out = network.output(x)
        loss = F.cross_entropy(out.logits, target)
    else:
        network(x)  # a first pass without it, as a network has been run before
        with mixing.at(network.get_submodule(site), target) as mixed:
            out = network.output(x)
            loss = mixed.loss(lambda z, y: F.cross_entropy(z, y, reduction="none"), out.logits)
    before = [p.detach().clone() for p in network.parameters()]
    loss.backward()
    assert all(p.grad is not None for p in network.parameters())
    optimizer.step()
    assert any(not torch.equal(p, q) for p, q in zip(before, network.parameters(), strict=True))
    return out


@pytest.mark.parametrize(("text", "side", "site", "millions"), [*NETWORKS, SQUEEZENET])
def test_a_step_with_its_own_norms_and_head(text, side, site, millions):
    skip_without(text)
    with torch.device("meta"):
        count = sum(p.numel() for p in create_model(text, 1000).parameters())
    assert count / 1e6 == pytest.approx(millions, abs=0.06)
    network = made(Recipe.make({"model": text}))
    norms = [type(m) for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert GhostBatchNorm2d not in norms and isinstance(network.head, nn.Linear)
    out = trained_one_step(network, side)
    assert out.logits.shape == (4, CLASSES) and out.features.shape == (4, network.feature_dim)
    assert out.feature_map.shape[:2] == (4, network.feature_dim)
    assert site in network.sites


@pytest.mark.parametrize(("text", "side", "site", "millions"), NETWORKS)
def test_a_step_with_our_norm_head_and_mixing(text, side, site, millions):
    skip_without(text)
    plain = made(Recipe.make({"model": text}))
    options = {"norm": "ghost(ghost_size=2)", "head": "cosine", "mix": f"mfw(site={site!r})"}
    network = made(Recipe.make({"model": text, **options}))
    norms = [m for m in plain.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert sum(isinstance(m, GhostBatchNorm2d) for m in network.modules()) == len(norms) > 0
    assert isinstance(network.head, CosineHead)
    convolution = next(name for name, m in plain.named_modules() if isinstance(m, nn.Conv2d))
    assert torch.equal(*(n.get_submodule(convolution).weight for n in (plain, network))), "comparisons are paired"
    mixing = MajorFeatureWeakening(class_counts=[40, 20, 10, 5, 2], alpha=1.0).to(DEVICE)
    out = trained_one_step(network, side, mixing, site)
    assert out.logits.shape == (4, CLASSES)


def test_squeezenet_has_a_convolution_for_a_head():
    text, side, site, _ = SQUEEZENET
    skip_without(text)
    library = importlib.import_module("torchvision.models").squeezenet1_1(num_classes=CLASSES).eval()
    x = torch.randn(2, 3, side, side)
    weight, bias = library.classifier[1].weight, library.classifier[1].bias
    expected = F.conv2d(library.features(x), weight, bias).mean((2, 3))  # without the ReLU between the two
    torch.manual_seed(0)
    network = create_model(text, CLASSES).eval()
    network.body.features.load_state_dict(library.features.state_dict())
    network.head.load_state_dict({"weight": weight.flatten(1), "bias": bias})
    torch.testing.assert_close(network(x), expected)
    mixing = MajorFeatureWeakening(class_counts=[40, 20, 10, 5, 2], alpha=1.0).to(DEVICE)
    trained_one_step(made(Recipe.make({"model": text, "head": "cosine"})), side, mixing, site)
    with pytest.raises(EquipoiseError, match="no batch norm to replace"):
        create_model(text, CLASSES, norm="ghost(ghost_size=2)")


@pytest.mark.parametrize("text", ["torchvision/densenet121", "timm/densenet121"])
def test_the_map_of_densenet_is_before_its_last_norm(text):
    skip_without(text)
    network = create_model(text, CLASSES).eval()
    seen = []
    network.body.features.norm5.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    for _ in range(2):  # the first pass finds the map, the others know it
        out = network.output(torch.randn(2, 3, 64, 64))
        assert torch.equal(out.feature_map, seen.pop())


def of_library(text, num_classes):
    """The library's own network, with moving averages that are not those of a new one."""
    library, _, name = text.partition("/")
    zoo = importlib.import_module({"torchvision": "torchvision.models"}.get(library, library))
    theirs = (zoo.get_model if library == "torchvision" else zoo.create_model)(name, num_classes=num_classes)
    for norm in (m for m in theirs.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)):
        norm.running_mean.normal_(0, 0.1)
        norm.running_var.uniform_(0.8, 1.2)
    return theirs.eval()


def saved(network, path):
    if path.suffix == ".safetensors":
        importlib.import_module("safetensors.torch").save_file(network.state_dict(), path)
    else:
        torch.save({"state_dict": network.state_dict()}, path)
    return str(path)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("torchvision/resnet18", ".pth"),
        ("torchvision/resnet18", ".safetensors"),
        ("torchvision/inception_v3", ".pth"),
        ("timm/resnet18", ".safetensors"),
        ("timm/efficientnet_b4", ".pth"),
    ],
)
def test_a_file_of_the_library_is_a_start(text, suffix, tmp_path):
    """With its own head, with a new one, and with our norms, which take the moving averages over."""
    skip_without(text)
    theirs = of_library(text, 7)
    x, file = torch.randn(2, 3, 96, 96), saved(theirs, tmp_path / f"file{suffix}")
    torch.testing.assert_close(create_model(text, 7, weights=file).eval()(x), theirs(x))
    with pytest.warns(FreshHead, match="drawn anew"):
        other = create_model(text, CLASSES, norm="ghost(ghost_size=2)", weights=file).eval()
    own = from_torch(theirs).eval()
    torch.testing.assert_close(other.output(x).features, own.output(x).features, rtol=1e-3, atol=1e-4)


@pytest.fixture
def stripes(tmp_path):
    """Three classes of ten images: dark above and bright below, or the other way round, or even; with noise."""
    pillow = pytest.importorskip("PIL.Image")
    for label, (above, below) in enumerate([(60, 180), (180, 60), (120, 120)]):
        (tmp_path / "photos" / f"class{label}").mkdir(parents=True)
        for i in range(10):
            image = (
                torch.randint(-50, 50, (32, 32, 3)) + torch.tensor([above, below]).repeat_interleave(16)[:, None, None]
            )
            pillow.fromarray(image.byte().numpy()).save(tmp_path / "photos" / f"class{label}" / f"{i}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("text", ["torchvision/resnet18", "timm/resnet18"])
def test_a_file_of_the_library_from_the_features_to_the_export(text, tmp_path, stripes):
    """`train = "head"` on the features of a frozen network, `train = "all"` from its weights, and both exported."""
    skip_without_workers(text)
    theirs = of_library(text, 7)
    file = saved(theirs, tmp_path / "file.safetensors")
    whole = {"train": "all", "optimizer": "adamw", "lr": 1e-4, "layer_decay": 0.7, "epochs": 1}
    results = equipoise.run(
        {
            "baseline": "head",
            "seeds": 1,
            "accept_short_training": True,
            "task": {"name": f"folder(path={str(stripes)!r}, size=32)"},
            "base": {"model": text, "weights": file, "epochs": 3, "batch_size": 8, "augment": "none"},
            "methods": {
                "head": {"train": "head"},
                "adjusted": {"train": "head", "loss": "balanced_softmax"},
                "all": whole,
            },
        },
        tmp_path / "runs",
        device=DEVICE.type,
        workers=1,
        listener=Listener(),
    )
    images = equipoise.load_task(f"folder(path={str(stripes)!r}, size=32)").test.images[:]
    features = from_torch(theirs).eval().output((images / 255 - MEAN) / STD).features
    torch.testing.assert_close(embed(images, text, weights=file), features, rtol=1e-4, atol=1e-5)
    for method in ("head", "all"):
        model = results.model(method, device="cpu")
        said = torch.from_numpy(results.predictions(method, seed=0)["logits"]).softmax(1)  # kept in half precision
        network = results.network(method, seed=0, device="cpu")
        torch.testing.assert_close(network(images).softmax(1), said, rtol=0, atol=1e-2)
        for to in ("torch_export", "torchscript"):  # each is checked by running it
            assert export(model, to, tmp_path / f"{method}.{to}").stat().st_size > 40e6  # 11 million weights
        body = dict(network.named_parameters())  # the state leaves a frozen body out
        kept = [name for name in body if name.endswith("layer1.0.conv1.weight")]
        is_theirs = torch.equal(body[kept[0]], theirs.state_dict()["layer1.0.conv1.weight"])
        assert len(kept) == 1 and is_theirs == (method == "head")
