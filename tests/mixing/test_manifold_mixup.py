import torch
from torch import nn

from equipoise.core import Spec
from equipoise.mixing import ManifoldMixup


def test_features_are_mixed_where_the_input_is_not():
    torch.manual_seed(1)
    seen = []
    first, second = nn.Linear(3, 4), nn.Linear(4, 2)
    second.register_forward_pre_hook(lambda module, args: seen.append(args[0].detach()))
    network = nn.Sequential(first, nn.ReLU(), second)
    x, target = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 0, 1])
    with ManifoldMixup(alpha=1.0).at(first, target) as mixed:
        loss = mixed.loss(nn.CrossEntropyLoss(reduction="none"), network(x))
    z, lam = first(x).detach(), mixed.lam[:, None]
    torch.testing.assert_close(seen[0], (lam * z + (1 - lam) * z[mixed.partner]).relu())
    loss.backward()
    assert torch.equal(mixed.label_lam, mixed.lam)


def test_text_and_repr():
    mix = Spec.parse("manifold_mixup(site='stage2')").build("mix")
    assert repr(mix) == "ManifoldMixup(alpha=1.0, site='stage2', per_batch=False)" and mix.site == "stage2"
    assert ManifoldMixup().site == "stage1"
