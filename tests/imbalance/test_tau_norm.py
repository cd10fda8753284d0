import numpy as np
import pytest
import torch

from equipoise.core import Output, Spec
from equipoise.imbalance import TauNorm, tau_normalize


def reference(weight, tau):
    return np.array([row / np.sqrt(sum(row**2)) ** tau for row in weight.double().numpy()])


@pytest.mark.parametrize("tau", [0.0, 0.7, 1.0, 2.0])
def test_weights_and_logits_follow_the_formula(tau):
    weight, features = torch.randn(4, 6) * torch.tensor([[9.0], [3.0], [1.0], [0.1]]), torch.randn(5, 6)
    np.testing.assert_allclose(tau_normalize(weight, tau), reference(weight, tau), rtol=1e-5)
    expected = features.double().numpy() @ reference(weight, tau).T
    out = TauNorm(weight, tau)(Output(torch.zeros(5, 4), features))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_number_by_hand():
    # (3, 4) has norm 5: tau 1 gives (0.6, 0.8), tau 2 (0.12, 0.16)
    np.testing.assert_allclose(tau_normalize(torch.tensor([[3.0, 4.0]]), 1.0), [[0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(tau_normalize(torch.tensor([[3.0, 4.0]]), 2.0), [[0.12, 0.16]], rtol=1e-6)


def test_a_row_of_zeros_and_half_precision():
    normalized = tau_normalize(torch.tensor([[0.0, 0.0], [3.0, 4.0]]).bfloat16(), 1.0)
    assert normalized.dtype == torch.float32 and normalized[0].tolist() == [0.0, 0.0]
    out = TauNorm(torch.eye(2), 1.0)(Output(torch.zeros(1, 2), torch.tensor([[1e4, -1e4]]).bfloat16()))
    assert bool(torch.isfinite(out).all())


def test_gradcheck():
    weight = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: tau_normalize(w, 0.7), (weight,))


@pytest.mark.parametrize("seed", range(5))
def test_tau_is_chosen_for_balanced_accuracy(seed):
    torch.manual_seed(seed)
    centres = torch.eye(3)
    weight = centres * torch.tensor([[8.0], [3.0], [1.0]])
    target = torch.randint(3, (400,))
    out = Output(torch.zeros(400, 3), centres[target] + 0.6 * torch.randn(400, 3))
    scores = {}
    for tau in [t / 10 for t in range(21)]:
        predicted = (out.features.double().numpy() @ reference(weight, tau).T).argmax(1)
        scores[tau] = np.mean([np.mean(predicted[target.numpy() == c] == c) for c in range(3)])
    top = max(scores.values())
    expected = min((t for t, s in scores.items() if s > top - 1e-9), key=lambda t: abs(t - 1))
    chosen = TauNorm(weight).fit(out, target)
    assert chosen.tau_ == expected and chosen.tau is None
    assert scores[expected] > scores[0.0] + 0.05


def test_the_network_is_left_alone():
    head = torch.nn.Linear(2, 2)
    before = head.weight.detach().clone()
    out = TauNorm(head.weight, tau=1.0)(Output(torch.zeros(1, 2), torch.randn(1, 2)))
    assert torch.equal(head.weight, before) and not out.requires_grad


def test_text_and_errors():
    norm = Spec.parse("tau_norm(tau=1)").build("posthoc", head_weight=torch.randn(3, 4))
    assert repr(norm) == "TauNorm(tau=1.0)" and norm.tau == 1.0
    with pytest.raises(ValueError, match="call fit"):
        TauNorm(torch.eye(2))(Output(torch.zeros(1, 2), torch.zeros(1, 2)))
    with pytest.raises(ValueError, match=r"features of shape \(N, 4\), got None"):
        norm(Output(torch.zeros(1, 3)))
    with pytest.raises(ValueError, match=r"features of shape \(N, 4\), got \(1, 5\)"):
        norm(Output(torch.zeros(1, 3), torch.zeros(1, 5)))
    with pytest.raises(ValueError, match="head_weight must be of shape"):
        TauNorm(torch.zeros(3))
    with pytest.raises(ValueError, match="tau must be at least 0"):
        TauNorm(torch.eye(2), tau=-0.5)
