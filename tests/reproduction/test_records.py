"""Small records: what they keep of a store, and how they grow."""

from dataclasses import replace

import pytest

from equipoise.core import EquipoiseError
from equipoise.reproduction import keep_records, read_records, records_of

from .conftest import document, record_of


def test_scores_of_the_last_epoch_with_all_that_explains_them(store):
    found = records_of(document(), store)
    assert found.scores("plain", "accuracy") == {0: 0.6, 1: 0.7, 2: 0.8}
    assert found.shown_scores("focal") == [90.0] * 3
    run = found.finished("plain")[1]
    assert (run.seed, run.key, run.data, run.parameters, run.seconds) == (1, "plain1", "images1", 1234, 1.2)
    assert run.metrics["valid_accuracy"] == 0.5 and "train_loss" not in run.metrics
    assert (run.device, run.ended[:10], run.versions["torch"]) == ("CPU x86_64", "2026-11-02", "2.11.0")


def test_a_recipe_leaves_out_what_is_not_used_and_where_the_data_lay(store):
    recipe = records_of(document(), store).methods["plain"]
    assert recipe["task"]["name"] == "folder(size=8)" and "mix" not in recipe
    assert recipe["plan"]["epochs"] == 30


def test_the_store_writes_down_that_its_test_set_was_opened(store):
    records_of(document(), store, peek=True)
    (opening,) = store.opened().openings
    assert len(opening.keys) == 6 and opening.peek


def test_a_file_is_read_as_it_was_written_and_is_small(store, tmp_path):
    found = records_of(document(), store)
    (path,) = keep_records([found], tmp_path / "records")
    assert path.name == "small.jsonl"
    assert read_records(tmp_path / "records") == {"small": found}
    assert path.stat().st_size < 1000 * len(found.runs)


def test_later_seeds_join_the_earlier_ones_whatever_the_order(store, tmp_path):
    for seeds in ((2,), (0, 1)):
        keep_records([records_of(document(seeds), store)], tmp_path)
    first = (tmp_path / "small.jsonl").read_text()
    keep_records([records_of(document((0, 1, 2)), store)], tmp_path)
    assert (tmp_path / "small.jsonl").read_text() == first
    assert [run.seed for run in read_records(tmp_path)["small"].finished("plain")] == [0, 1, 2]


def test_runs_of_another_recipe_are_not_mixed_in(store):
    found = records_of(document(), store)
    other = replace(found, methods={**found.methods, "plain": {"loss": "focal"}})
    with pytest.raises(EquipoiseError, match="'plain' with another recipe"):
        found.joined(other)


def test_an_option_that_came_later_makes_no_other_recipe(store):
    found = records_of(document(), store)
    before, since = (
        replace(found, methods={**found.methods, "plain": {"mix": text, "plan": plan}})
        for text, plan in (("cutmix(alpha=1.0)", {}), ("cutmix(alpha=1.0, share=1.0)", {"accumulate": 1}))
    )
    assert before.joined(since).methods["plain"]["mix"] == "cutmix(alpha=1.0, share=1.0)"
    half = replace(found, methods={**found.methods, "plain": {"mix": "cutmix(alpha=1.0, share=0.5)", "plan": {}}})
    with pytest.raises(EquipoiseError, match="'plain' with another recipe"):
        before.joined(half)


def test_a_failed_run_is_kept_without_scores(store, tmp_path):
    store.remove("plain1")
    store.put(record_of("plain", 1, state="failed", error="Traceback …\nDiverged: the loss is nan"))
    (path,) = keep_records([records_of(document(), store)], tmp_path)
    found = read_records(path)["small"]
    assert found.scores("plain", "accuracy") == {0: 0.6, 2: 0.8}
    assert [run.error for run in found.runs if run.error] == ["Diverged: the loss is nan"]


def test_runs_that_are_not_there_are_left_out(store):
    found = records_of(document(seeds=(0, 1, 2, 3)), store)
    assert len(found.runs) == 6


def test_runs_of_another_study_are_taken_by_their_keys(store):
    found = records_of(document(), store)
    store.remove("plain1")
    again = records_of(document(name="other"), store, {run.key: run for run in found.runs})
    assert again.scores("plain", "accuracy") == {0: 0.6, 1: 0.7, 2: 0.8}


def test_files_one_after_the_other_are_several_studies(store, tmp_path):
    texts = [records_of(document(name=name), store).text() for name in ("one", "two")]
    path = tmp_path / "both.jsonl"
    path.write_text("".join(texts))
    assert [study.text() for study in read_records(path).values()] == texts


@pytest.mark.parametrize(
    ("line", "message"), [("no record", "line 4 is no record"), ('{"seed": 1}', "cannot be read: None")]
)
def test_a_line_that_is_no_record_is_named(store, tmp_path, line, message):
    path = tmp_path / "small.jsonl"
    path.write_text("\n".join([*records_of(document(), store).text().splitlines()[:3], line]))
    with pytest.raises(EquipoiseError, match=message):
        read_records(path)
