"""Openings of the test set are written down: when, by which version, of which runs, and whether too early."""


def openings(store):
    return [(o["keys"], o["peek"]) for o in store.read_json("opened.json")["openings"]]


def test_each_run_is_noted_once(store):
    store.note_opening(["b", "a"])
    first = store.read_json("opened.json")
    store.note_opening(["a"], peek=True)
    assert store.read_json("opened.json") == first
    assert openings(store) == [(["a", "b"], False)]
    assert first["openings"][0]["when"] and first["openings"][0]["by_version"] == first["by_version"]


def test_a_peek_stays(store):
    store.note_opening(["a"], peek=True)
    store.note_opening(["a", "b", "c"])
    assert openings(store) == [(["a"], True), (["b", "c"], False)]


def test_nothing_opened_is_nothing_noted(store):
    store.note_opening([])
    assert not (store.path / "opened.json").exists()


def test_a_file_of_before_there_was_a_list(store):
    old = {"first_opened": "2025-01-01T00:00:00+00:00", "by_version": "0.1.0"}
    store.write_json("opened.json", old)
    store.note_opening(["a"])
    found = store.read_json("opened.json")
    assert {name: found[name] for name in old} == old and openings(store) == [(["a"], False)]
