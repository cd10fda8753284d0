"""What is written of a study is read back equal; what is not such a document says what is wrong with it, and where."""

import json

import pytest

from equipoise.analysis.statistics.looks import Looks
from equipoise.analysis.statistics.sequential import Round, Rounds
from equipoise.core import EquipoiseError
from equipoise.store import (
    SCHEMA,
    Analysis,
    Compared,
    Comparison,
    Damaged,
    MethodDocument,
    Opened,
    Opening,
    Sensitivity,
    StudyDocument,
)
from equipoise.store.analysis import (
    Against,
    ClassWeights,
    Corruptions,
    Embedding,
    Ensembles,
    Estimated,
    ExampleWeights,
    FurtherImages,
    Hardness,
    Likeness,
    MethodAccuracy,
    MethodAlpha,
    MethodCorrupted,
    MethodElsewhere,
    MethodLayers,
    MethodPoints,
    MethodWeights,
    Predictions,
    Problem,
    Representations,
    RunName,
    Transfer,
    Tree,
)
from equipoise.store.sensitivity import Dial, TriedValue, TunedMethod

E = Estimated(3, 0.5, 0.4, 0.6)
ALONE = Estimated(1, 0.5, None, None)
TREE, RUNS, PAIRS = Tree(((5.0, 5.0),), ((0.0, 0.1),)), (RunName("a", 0), RunName("b", 0)), ((1.0, None), (None, 1.0))
LAYERS = MethodLayers(
    name="a", layers=("stem", "features"), separation={"cosine": (E, ALONE)}, centered=E, nonzero=(E, E),
    spectra={"features": (1.0, 0.1)}, distances={"within": (0.5, 1.5)}, pairs_of=50,
    hardness=Hardness(E, E, ALONE, (0.0, 1.0)),
)  # fmt: skip
ANALYSIS = Analysis(
    made_by="0.1.0", study="s", question="?", baseline="a", asked_images=50,
    problems=(Problem("b", 1, "layers", "features are not finite"),),
    predictions=Predictions(
        images=9, runs=RUNS, same_top1=PAIRS, both_right_or_wrong=PAIRS, same_error=PAIRS, order=(1, 0), tree=TREE,
        methods=("a", "b"), between={"same_top1": PAIRS}, ensembles=Ensembles(3, ("a", "b"), PAIRS, (0.5, 0.6)),
    ),
    weights=ClassWeights((9, 1), (MethodWeights("b", "inverse_frequency", (0.2, 1.8), None),)),
    representations=Representations(
        images=50, methods=(LAYERS,), class_names=("x", "y"), embedding=Embedding(
            "PCA", (0, 1), (MethodPoints("a", 0, ((0.0, 1.0), (2.0, 3.0)), 0.9),)),
        cka=Likeness(50, RUNS, PAIRS, (1, 0), TREE, ("a", "b"), PAIRS, 3, ((PAIRS, None), (None, PAIRS))),
    ),
    transfer=(Transfer("blobs", 40, 20, (MethodAccuracy("a", E),), Against({"a": ((0.1, 0.9),)}, None, 1)),),
    further=(FurtherImages("/photos", "accuracy", 9, 2, (MethodElsewhere("a", E, E, ALONE),)),),
    corruptions=Corruptions(9, "a", (MethodCorrupted("a", E, E, (E, E), {"fog": (E, ALONE)}),)),
    alpha=ExampleWeights((0.0, 1.0), 9, (MethodAlpha("b", "loss", (E, ALONE), (0.5,)),)),
)  # fmt: skip
POINTS = (TriedValue(1.0, 0.7, None, 2), TriedValue("none", None, None, 1))
SENSITIVITY = Sensitivity("accuracy", True, (TunedMethod("a", 0.7, (Dial("lr", "log", 1.0, False, POINTS),)),))
STUDY = StudyDocument(
    name="s", question="?", baseline="a", metric="accuracy", seeds=(0, 1), priority={"metric": "accuracy"},
    methods=(MethodDocument("a", {"loss": "focal", "task": {"name": "digits"}}, ("k0", "k1")),),
    tuned={"trials": 6}, rounds=True,
)  # fmt: skip
COMPARED = Compared("a", {"loss": "focal"}, {0: "k0", 1: "k1"})
OPENED = Opened(
    "2026-01-01", "0.1.0", (Opening("2026-01-01", "0.1.0", True, ("k0",)),),
    (Comparison("2026-01-01", "0.1.0", "accuracy", None, COMPARED, (COMPARED,)),), lost="2026-01-02",
)  # fmt: skip
ROUNDS = Rounds(0.05, Looks((6, 8), (0.5, 0.5)), tuple(range(8)), (Round(("a",), {"b": "worse"}, ("?",), ()),), "plan")


@pytest.mark.parametrize(
    "document", [ANALYSIS, SENSITIVITY, STUDY, OPENED, ROUNDS], ids=lambda document: type(document).__name__
)
class TestEveryDocument:
    def test_is_read_as_it_was_written(self, store, document):
        assert not store.holds(type(document))
        store.write(document)
        assert store.document(type(document)) == document

    def test_says_its_schema_and_refuses_a_newer_one(self, store, document):
        store.write(document)
        plain = store.read_json(document.FILE)
        assert plain["schema"] == SCHEMA
        store.write_json(document.FILE, plain | {"schema": SCHEMA + 1})
        with pytest.raises(EquipoiseError, match=rf"{document.FILE} was written by a newer version"):
            store.document(type(document))

    def test_says_what_it_lacks(self, store, document):
        first = next(iter(document.to_dict()))
        plain = document.to_dict()
        del plain[first]
        store.write_json(document.FILE, plain)
        with pytest.raises(Damaged, match=rf"{first}'? is not in it"):
            store.document(type(document))


def test_what_does_not_fit_is_told_with_its_place(store):
    plain = json.loads(json.dumps(ANALYSIS.to_dict()))
    plain["representations"]["methods"][0]["centered"]["n"] = "three"
    store.write_json(Analysis.FILE, plain)
    with pytest.raises(Damaged, match="representations: methods: centered: n: 'three' stands where a whole number"):
        store.document(Analysis)


def test_a_part_is_read_though_another_is_broken(store):
    plain = json.loads(json.dumps(ANALYSIS.to_dict())) | {"predictions": 3}
    assert Analysis.part("weights", plain) == ANALYSIS.weights
    with pytest.raises(ValueError, match="predictions: 3 stands where a table should"):
        Analysis.part("predictions", plain)


def test_parts_that_were_not_asked_for_may_be_absent():
    head = {"made_by": "0.1.0", "study": "s", "question": "?", "baseline": "a", "asked_images": 5}
    found = Analysis.from_dict(head)
    assert found.predictions is None and found.transfer == ()
