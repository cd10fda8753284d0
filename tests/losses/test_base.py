import pytest
import torch

import equipoise.losses
from equipoise.losses import CrossEntropyLoss, Loss


class Constant(Loss):
    """The least a subclass writes."""

    def per_sample(self, logits, target):
        return logits.sum(1)


@pytest.mark.parametrize(("reduction", "expected"), [("mean", 3.0), ("sum", 6.0), ("none", [2.0, 4.0])])
def test_a_subclass_needs_per_sample_only(reduction, expected):
    value = Constant(reduction)(torch.tensor([[1.0, 1.0], [2.0, 2.0]]), torch.tensor([0, 1]))
    assert value.tolist() == expected


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction must be one of 'mean', 'sum', 'none', not 'avg'"):
        CrossEntropyLoss(reduction="avg")


class Counting(Loss):
    """Counts how often it is asked what it derives from its counts."""

    asked = 0

    def derived(self, counts):
        self.asked += 1
        return 2 * counts

    def ready_for(self, logits):
        return self.ready(logits.dtype, logits.device)


def test_what_is_derived_from_the_counts_is_derived_once_and_anew_when_they_change():
    loss, logits = Counting(class_counts=[1, 2]), torch.zeros(1, 2)
    assert loss.ready_for(logits).tolist() == [2, 4] and loss.ready_for(logits).dtype == torch.float32
    assert loss.asked == 1
    loss.half()
    assert loss.ready_for(logits).tolist() == [2, 4]
    assert loss.ready_for(logits.double()).dtype == torch.float64
    asked = loss.asked
    loss.load_state_dict(Counting(class_counts=[3, 4]).state_dict())
    assert loss.ready_for(logits.double()).tolist() == [6, 8]
    loss.class_counts[0] = 5
    assert loss.ready_for(logits.double()).tolist() == [10, 8]
    for counts in ([1, 1], [1, 2]):
        loss.class_counts = torch.tensor(counts)
        assert loss.ready_for(logits.double()).tolist() == [2 * n for n in counts]
    assert loss.asked == asked + 4
    assert loss.ready_for(logits.to("meta").double()).is_meta


def test_an_error_that_is_not_the_labels_passes_unchanged():
    class Broken(Loss):
        def per_sample(self, logits, target):
            raise RuntimeError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        Broken()(torch.zeros(1, 2), torch.tensor([0]))


def test_all_names_what_is_there():
    names = equipoise.losses.__all__
    assert names == sorted(names)
    public = {name for name in vars(equipoise.losses) if not name.startswith("_")}
    modules = {name for name in public if type(getattr(equipoise.losses, name)).__name__ == "module"}
    assert public - modules <= set(names)
    assert set(names) <= public
