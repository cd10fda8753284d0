"""The checks find what is wrong, and say what it is."""

import pytest
import torch

from equipoise.core import Card, EquipoiseError, checks
from equipoise.imbalance import EffectiveNumber
from equipoise.losses import FocalLoss, Loss
from equipoise.testing import check_loss, check_method, check_registration, check_weighting


class Sum(Loss):
    """The sum of all costs, with one mistake that a subclass makes."""

    def per_sample(self, logits, target):
        return (
            -self.changed(logits.float() if logits.itemsize < 4 else logits)
            .log_softmax(1)
            .gather(1, target.long()[:, None])
            .squeeze(1)
        )

    def changed(self, logits):
        return logits


class Shifted(Sum):
    def changed(self, logits):
        return logits + torch.arange(logits.shape[1])


class Growing(Sum):
    def changed(self, logits):
        return logits * logits.exp()


class Detached(Sum):
    def changed(self, logits):
        return logits + (logits.detach() - logits) / 2


class Relative(Sum):
    def changed(self, logits):
        return logits - logits.mean(0)


class Writing(Sum):
    def changed(self, logits):
        logits.detach()[:, 0] += 1
        return logits


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        (Growing, "loss odd, extreme logits have finite values and gradients: .* values at logits of ±1e4"),
        (Shifted, "loss odd, renaming classes changes nothing: with classes in another order it differs"),
        (Relative, "loss odd, small batches: a sample alone differs"),
        (Writing, "loss odd, arguments are left alone: it wrote into its arguments"),
    ],
)
def test_a_loss_with_a_mistake_is_found(loss, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_loss(Card("odd", "loss", loss))


def test_a_wrong_slope_is_found():
    with pytest.raises(AssertionError, match="the gradient is that of the value: GradcheckError: Jacobian mismatch"):
        check_loss(Card("odd", "loss", Detached))


def test_a_wrong_neutral_value_is_found():
    with pytest.raises(AssertionError, match="neutral is cross entropy: at {'gamma': 1.0} it differs"):
        check_loss(Card("odd", "loss", FocalLoss, neutral={"gamma": 1.0}))


def test_negative_weights_are_found():
    class Negative(EffectiveNumber):
        def weights(self, target, out):
            return -super().weights(target, out)

    with pytest.raises(AssertionError, match="each sample has a weight: weights must be finite and not negative"):
        check_weighting(Card("odd", "weighting", Negative))


class Unexplained:
    """Says nothing"""

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength


class Trusting:
    """Takes anything.

    Args:
        strength: how much.

    Differs from the paper: there is none. Example: none. Reference: none.

    Example: none.
    """

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength


class Typeless(Trusting):
    __doc__ = Trusting.__doc__

    def __init__(self, strength=1.0) -> None:
        self.strength = checks.at_least("strength", strength, 0)


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (
            Unexplained,
            "its docstring says what it must: the docstring's first line, 'Says nothing', is not one sentence",
        ),
        (Typeless, "every parameter has an annotation: strength has no annotation"),
    ],
)
def test_a_method_that_does_not_explain_itself_is_found(factory, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_registration(Card("odd", "penalty", factory))


def test_an_example_of_what_it_does_not_take_is_found():
    with pytest.raises(AssertionError, match="names power, which it does not take"):
        check_registration(Card("odd", "penalty", Trusting, examples=({"power": 2},)))


def test_a_check_of_another_kind_is_refused():
    with pytest.raises(AssertionError, match="odd is registered as a penalty, not as a loss"):
        check_loss(Card("odd", "penalty", Trusting))
    with pytest.raises(EquipoiseError, match="no loss is named 'uniform'"):
        check_method("loss", "uniform")
