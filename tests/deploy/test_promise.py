"""A promise in words, and as data."""

from dataclasses import asdict

from equipoise.deploy import Promise, Range


def test_with_doubted_labels_it_is_a_range_from_one_to_the_other():
    promise = Promise(Range(0.65, 0.6, 0.7), 1010, 900, doubted=96, undoubted=Range(0.75, 0.7, 0.8))
    assert (promise.low, promise.high) == (0.6, 0.8)
    assert Promise.from_dict(asdict(promise)) == promise
    said = str(promise)
    assert "65.0 % (95 % interval 60.0 to 70.0 %)" in said and "1,010 test images in 900 groups" in said
    assert "75.0 % (95 % interval 70.0 to 80.0 %) without the 96 of them" in said


def test_without_doubts_it_is_one_number():
    promise = Promise(Range(0.65, 0.6, 0.7), 10, 10)
    assert (promise.low, promise.high) == (0.6, 0.7) and Promise.from_dict(asdict(promise)) == promise
    assert "group" not in str(promise) and "doubt" not in str(promise) and "judged:" not in str(promise)


def test_labels_that_nobody_judged_are_told():
    promise = Promise(Range(0.65, 0.6, 0.7), 10, 10, judged=False)
    assert Promise.from_dict(asdict(promise)) == promise
    assert str(promise).endswith("Labels were not judged: where some are wrong, expect more.")
