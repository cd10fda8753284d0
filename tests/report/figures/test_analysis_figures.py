"""Figures and sections of an analysis."""

import copy
import math
import re
import xml.etree.ElementTree as ET

import pytest

from equipoise.report import collect, sections_of, write_report
from equipoise.report.collected import Estimate
from equipoise.report.figures.heat import Clustered, Shades, cells, cluster_plot, method_matrix, named_rows
from equipoise.report.figures.lines import Axis, Values, line_panel, mark_panel, rows_panel
from equipoise.report.figures.multiples import LayerPair, distance_densities, feature_maps, layer_maps
from equipoise.report.figures.scatter import scatter_panel

NAMES = ["plain", "balanced_softmax", "ldam", "focal"]
LAYERS = ["stem", "stage1", "features"]
HOSTILE = "</title></svg><script>alert(1)</script>&\"'"


def e(mean, half=0.1, n=3):
    return {"n": n, "mean": mean, "low": mean - half, "high": mean + half}


def method(name, level):
    return {
        "name": name, "layers": LAYERS, "pairs_of": 50, "centered": e(level),
        "separation": {"cosine": [e(0.1), e(0.3), e(level)], "euclidean": [e(0.1), e(0.2), e(level / 2)]},
        "nonzero": [e(0.5), e(0.6), e(0.7)],
        "spectra": {"features": [1.0, 0.5, 0.1], "centroids": [1.0, 1e-17], "head": [1.0, 0.2]},
        "distances": {"within": [1.5, 0.5, 0.0, 0.0], "between": [0.0, 1.0, 1.0, 0.0]},
        "hardness": {"mean": e(0.8), "right": e(0.7), "wrong": e(1.1), "density": [0.0, 2.0, 0.0]},
    }  # fmt: skip


@pytest.fixture
def analysis():
    """As `equipoise analyze` writes it, of the methods of the simulated study."""
    pairs = [[1.0, 0.9, 0.5, 0.6], [0.9, 1.0, 0.4, 0.7], [0.5, 0.4, 1.0, 0.3], [0.6, 0.7, 0.3, 1.0]]
    tree = {"x": [[5, 5, 15, 15], [10, 10, 25, 25], [17.5, 17.5, 35, 35]],
            "height": [[0, 0.1, 0.1, 0], [0.1, 0.4, 0.4, 0], [0.4, 0.6, 0.6, 0]]}  # fmt: skip
    runs = [{"method": name, "seed": 0} for name in NAMES]
    block = [[0.9, 0.5, 0.2], [0.5, 0.8, 0.3], [0.2, 0.3, 0.7]]
    errors = {"fog": [e(0.2 + 0.1 * s) for s in range(5)], "snow": [e(0.3)] * 5}
    return {
        "schema": 1, "made_by": "0.1.0", "study": "digits_demo", "question": "?", "baseline": "plain",
        "asked_images": 50, "problems": [],
        "predictions": {
            "images": 300, "runs": runs, "same_top1": pairs, "both_right_or_wrong": pairs,
            "same_error": pairs, "order": [0, 1, 3, 2], "tree": tree, "methods": NAMES,
            "between": {name: pairs for name in ("same_top1", "both_right_or_wrong", "same_error")},
            "ensembles": {"voters": 3, "methods": NAMES, "accuracy": pairs, "alone": [0.7, 0.8, 0.8, 0.7]},
        },
        "representations": {
            "images": 50, "class_names": ["a", "b"], "methods": [method(n, 0.4 + i / 10) for i, n in enumerate(NAMES)],
            "cka": {"images": 50, "runs": runs, "features": pairs, "order": [0, 1, 3, 2], "tree": tree,
                    "methods": NAMES, "between": pairs, "seeds": 3, "layers": [[block] * 4] * 4},
            "embedding": {"kind": "PCA", "labels": [0, 1, 1], "methods": [
                {"name": n, "seed": 0, "points": [[0, 0], [1, 2], [3, 1]], "share": 0.6} for n in NAMES]},
        },
        "transfer": [{
            "task": "blobs", "train": 40, "test": 20, "methods": [{"name": n, "accuracy": e(0.7)} for n in NAMES],
            "separation": {"runs": {n: [[0.4, 0.7], [0.5, 0.6]] for n in NAMES}, "rank_correlation": -0.5,
                           "methods": 4},
        }],
        "corruptions": {"images": 30, "baseline": "plain", "methods": [
            {"name": n, "clean": e(0.1), "mce": e(90.0), "by_severity": [e(0.1 * s) for s in range(6)],
             "errors": errors} for n in NAMES]},
        "weights": {"counts": [100, 10, 0], "methods": [
            {"name": "focal", "weighting": "effective_number(beta=0.9)", "weights": [0.5, 2.0, 0.5],
             "effective": [10.0, 6.5, 0.0]},
            {"name": "ldam", "weighting": "inverse_frequency", "weights": [0.3, 2.7, 0.0], "effective": None}]},
        "alpha": {"alphas": [0.0, 0.5, 1.0], "images": 20, "methods": [
            {"name": "ldam", "metric": "loss", "curve": [e(0.7), e(0.6), e(0.9)], "best": [0.5, 0.5, 0.0]}]},
    }  # fmt: skip


@pytest.fixture
def figures(analysis):
    """Every figure, wide and narrow where there are both."""

    def draw(results, names=NAMES):
        pairs = analysis["predictions"]["same_top1"]
        tree = analysis["predictions"]["tree"]
        clustered = Clustered([(n, 0) for n in names], pairs, [0, 1, 3, 2], tree["x"], tree["height"])
        curve = [(0.0, Estimate(3, 0.5, 0.4, 0.6)), (1.0, Estimate(3, 0.7, 0.6, 0.8))]
        curves, axis = dict.fromkeys(names, curve), Axis.named(["first", "last"])
        pair = LayerPair(LAYERS, LAYERS, [[0.9, 0.5, 0.2]] * 3)
        yield method_matrix(results, "Pairs", names, pairs, Shades.of(pairs))
        yield named_rows(results, "Rows", ["fog"], names, [[0.1, 0.2, 0.3, 0.4]], Shades(0, 1))
        yield line_panel(results, "Lines", axis, curves, Values())
        yield mark_panel(results, "Marks", axis, curves, Values())
        yield rows_panel(results, "Rows", {n: curve[0][1] for n in names}, Values())
        yield scatter_panel(results, "Scatter", "Separation", {n: [(0.1, 0.2), (0.3, 0.4)] for n in names})
        for wide in (True, False):
            yield cluster_plot(results, "Clusters", clustered, Shades.of(pairs), wide)
            yield layer_maps(results, "Layers", dict.fromkeys(names, pair), wide)
            rows = {n: [1.0, 1.0] for n in names}
            yield distance_densities(results, "Distances", rows, rows, wide)
            points = {n: [[0, 0], [1, 2], [3, 1]] for n in names}
            yield feature_maps(results, "Features", points, [0, 1, 1], [HOSTILE, "b"], wide)

    return draw


def test_all_are_well_formed_and_say_what_they_show(results, figures):
    for figure in figures(results):
        root = ET.fromstring(str(figure))
        assert root.get("role") == "img" and len(root.get("aria-label")) > 30
        assert "nan" not in str(figure).lower() and "<script" not in figure
        width, height = map(float, root.get("viewBox").split()[2:])
        for element in root.iter():
            for name, value in element.attrib.items():
                if name in ("x", "cx", "x1", "x2", "y", "cy", "y1", "y2"):
                    assert -1 <= float(value) <= (width if "x" in name else height) + 1, (element.tag, name, value)


def test_hostile_names_stay_text(store, figures):
    study = store.read_json("study.json")
    study["methods"][2]["name"] = HOSTILE
    store.write_json("study.json", study)
    for figure in figures(collect(store), [*NAMES[:2], HOSTILE, NAMES[3]]):
        assert "<script" not in figure
        ET.fromstring(str(figure))


def test_methods_that_are_not_in_the_study_are_not_drawn(results, figures):
    """A study whose methods were renamed after its analysis."""
    drawn = list(figures(results, ["old", "older", "oldest", "ancient"]))
    assert not any(drawn)


# -- what stands where -----------------------------------------------------------------------------------------------


def test_the_larger_the_value_the_fuller_its_cell():
    shades = Shades(0.2, 0.8)
    assert [round(shades(v), 2) for v in (0.1, 0.2, 0.5, 0.8, 0.9)] == [
        0.05,
        0.05,
        pytest.approx(0.5, abs=0.03),
        0.95,
        0.95,
    ]
    assert Shades(0.5, 0.5)(0.5) == pytest.approx(0.5, abs=0.03)  # a matrix of one value


def boxes(parts):
    """(x, y, opacity) of each cell."""
    found = {}
    for part in parts:
        element = ET.fromstring(str(part))
        for x, y in re.findall(r"M([\d.]+),([\d.]+)h", element.get("d")):
            found[float(x), float(y)] = float(element.get("fill-opacity"))
    return found


def test_cells_stand_in_rows_and_columns():
    found = boxes(cells([[0.0, 1.0], [math.nan, 0.5]], 100.0, 50.0, 40.0, 20.0, Shades(0, 1)))
    assert set(found) == {(100, 50), (120, 50), (120, 60)}  # what is not known has no cell
    assert found[100, 50] < found[120, 60] < found[120, 50]


def test_runs_stand_in_the_order_of_the_tree(results, analysis):
    found = analysis["predictions"]
    clustered = Clustered([(n, 7) for n in NAMES], found["same_top1"], found["order"], found["tree"]["x"],
                          found["tree"]["height"])  # fmt: skip
    figure = cluster_plot(results, "Title", clustered, Shades(0, 1))
    groups = [g for g in ET.fromstring(str(figure)).iter("g") if g.get("data-method")]
    index = {m.name: str(m.index) for m in results.methods}
    assert [g.get("data-method") for g in groups] == [index[NAMES[i]] for i in (0, 1, 3, 2)]
    labels = ["".join(t.itertext()) for g in groups for t in g.iter("text")]
    assert labels == [f"{NAMES[i]} seed 7" for i in (0, 1, 3, 2)]
    tree = next(p for p in ET.fromstring(str(figure)).iter("path") if p.get("class") == "tree")
    places = [tuple(map(float, p)) for p in re.findall(r"[ML]([\d.]+),([\d.]+)", tree.get("d"))]
    marks = [float(c.get("cy")) for g in groups for c in g.iter("circle")]
    leaves = sorted(y for x, y in places if x == max(x for x, _ in places))
    assert leaves == pytest.approx(sorted(marks))  # the tree's ends meet the rows
    assert places[0][0] > places[-2][0]  # and its root is at the left


def test_a_diagonal_of_a_run_with_itself_is_left_out(results, analysis):
    clustered = Clustered([(n, 0) for n in NAMES], [[1.0] * 4] * 4, [0, 1, 2, 3], [], [])
    figure = cluster_plot(results, "Title", clustered, Shades(0, 1))
    drawn = [p for p in ET.fromstring(str(figure)).iter("path") if p.get("class") == "heat"]
    fullest = sum(p.get("d").count("M") for p in drawn if float(p.get("fill-opacity")) > 0.94)
    assert fullest == 12 + 1  # and the end of the key


def test_lines_pass_through_their_values(results, groups):
    curve = [(0.0, Estimate(3, 0.2, 0.1, 0.3)), (1.0, Estimate(3, 0.6, 0.5, 0.7)), (2.0, Estimate(3, 0.4, 0.3, 0.5))]
    figure = line_panel(results, "Title", Axis.named(["a", "b", "c"]), {"ldam": curve}, Values(floor=0, ceiling=1))
    (group,) = groups(figure).values()
    marks = [(float(c.get("cx")), float(c.get("cy"))) for c in group.iter("circle")]
    (x0, y0), (x1, y1), (x2, y2) = marks
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.02)
    assert (y0 - y2) / (y0 - y1) == pytest.approx(0.5, abs=0.001)
    texts = [t.text for t in ET.fromstring(str(figure)).iter("text")]
    assert {"a", "b", "c"} <= set(texts)
    assert "ldam: 0.600 [0.500, 0.700], n = 3" in figure


def test_a_log_scale_leaves_out_what_has_no_logarithm(results, groups):
    curve = [(1.0, Estimate(1, 1.0, math.nan, math.nan)), (2.0, Estimate(1, 0.0, math.nan, math.nan))]
    figure = line_panel(results, "Title", Axis.of([1, 2]), {"ldam": curve}, Values(log=True))
    (group,) = groups(figure).values()
    assert len(list(group.iter("circle"))) == 1


def test_rows_come_best_first(results):
    rows = {name: Estimate(3, mean, mean - 1, mean + 1) for name, mean in zip(NAMES, (3.0, 1.0, 4.0, 2.0), strict=True)}

    def order(up):
        texts = [t.text for t in ET.fromstring(str(rows_panel(results, "Title", rows, Values(), up))).iter("text")]
        return [t for t in texts if t in NAMES]

    assert order(True) == ["ldam", "plain", "focal", "balanced_softmax"] == order(False)[::-1]


def test_a_method_s_mark_stands_at_the_mean_of_its_runs(results, groups):
    pairs = {"ldam": [(0.0, 0.0), (1.0, 0.5)], "focal": [(0.2, 1.0)]}
    found = groups(scatter_panel(results, "Title", "x", pairs))
    index = {m.name: str(m.index) for m in results.methods}
    seeds, mark = [], None
    for c in found[index["ldam"]].iter("circle"):
        place = float(c.get("cx")), float(c.get("cy"))
        if c.get("class") == "seed":
            seeds.append(place)
        else:
            mark = place
    assert mark == pytest.approx([(a + b) / 2 for a, b in zip(*seeds, strict=True)], abs=0.02)


def test_points_keep_their_proportions(results):
    """A square of features is a square in the drawing: directions of little variance are not stretched."""
    points = {"plain": [[0.0, 0.0], [10.0, 1.0]]}
    figure = feature_maps(results, "Title", points, [0, 1], ["zero", "one"])
    (a, b) = re.findall(r'class="points k\d" d="M([\d.]+),([\d.]+)h0"', str(figure))
    dx, dy = float(b[0]) - float(a[0]), float(a[1]) - float(b[1])
    assert dx / dy == pytest.approx(10, rel=0.02)
    assert ">zero<" in figure and ">one<" in figure


def test_training_images_are_dots_and_test_images_crosses(results):
    points = {"plain": [[0.0, 0.0], [10.0, 1.0], [4.0, 4.0], [5.0, 5.0], [6.0, 6.0]]}
    figure = str(feature_maps(results, "Title", points, [0, 1, 0, 0, 1], ["zero", "one"], training=2))
    dots = {k: d.count("h0") for k, d in re.findall(r'class="points k(\d)" d="([^"]*)"', figure)}
    crosses = {k: d.count("M") for k, d in re.findall(r'class="crosses k(\d)" d="([^"]*)"', figure)}
    assert dots == {"1": 1, "2": 1} and crosses == {"1": 2, "2": 1}
    assert "crosses" not in str(feature_maps(results, "Title", points, [0, 1, 0, 0, 1], ["zero", "one"]))


# -- sections --------------------------------------------------------------------------------------------------------


SECTIONS = {"similarity": 5, "representations": 13, "transfer": 2, "robustness": 3, "weights": 2, "alpha": 1}


def further(store, results):
    """The sections of more than the runs."""
    return [section for section in sections_of(store, results) if section.further]


def test_sections_of_what_was_analyzed(store, results, analysis):
    assert further(store, results) == []
    store.write_json("analysis.json", analysis)
    found = further(store, results)
    assert {s.name: len(s.figures) for s in found} == SECTIONS
    for section in found:
        for figure in section.figures:
            caption = figure[figure.index("<figcaption>") :]
            assert len(caption) > 40, section.name
    page = write_report(store).read_text()
    for name in SECTIONS:
        assert f'<section id="{name}"' in page and f'href="#{name}"' in page
        assert not re.search(r"\bnan\b", page[page.index(f'<section id="{name}"') :].partition("</section>")[0])
    for said in (
        "300 test images",
        "50 images",
        "over 3 seeds",
        "40 images of blobs",
        "Rank correlation of the means of 4",
    ):
        assert said in page
    assert "−0.50" in page


def test_sections_of_what_earlier_versions_did_not_measure(store, results, analysis):
    pairs = analysis["predictions"]["ensembles"]["accuracy"]
    analysis["predictions"]["ensembles"]["agreement"] = pairs
    analysis["representations"] |= {"training_images": 40}
    analysis["representations"]["embedding"]["training"] = 2
    analysis["transfer"][0]["own_accuracy"] = analysis["transfer"][0]["separation"] | {"rank_correlation": 0.25}
    store.write_json("analysis.json", analysis)
    found = {s.name: s for s in further(store, results)}
    assert {name: len(s.figures) for name, s in found.items()} == SECTIONS | {"similarity": 6, "transfer": 3}
    assert "distances are of 40 training images, all else of 50 test images" in found["representations"].sentence
    assert "Dots are 2 training images, crosses are test images." in str(found["representations"].figures[-1])
    assert "Same vote of 3 runs, %" in str(found["similarity"].figures[-1])
    assert "own test images, %" in str(found["transfer"].figures[-1]) and "+0.25" in str(found["transfer"].figures[-1])


def test_numbers_of_earlier_versions_are_called_what_they_were(store, results, analysis):
    store.write_json("analysis.json", analysis)
    found = {s.name: s for s in further(store, results)}["representations"]
    assert "distances are of 50 test images" in found.sentence and "maps averaged over positions" in str(found.figures)
    assert "Features of test images, PCA" in str(found.figures[-1])


def test_only_what_is_there(store, results, analysis):
    analysis |= {"transfer": [], "corruptions": None, "weights": None, "alpha": None}
    analysis["predictions"]["ensembles"] = analysis["representations"]["cka"] = None
    for m in analysis["representations"]["methods"]:
        del m["hardness"], m["spectra"]["head"]
    store.write_json("analysis.json", analysis)
    assert {s.name: len(s.figures) for s in further(store, results)} == {"similarity": 4, "representations": 8}


def of_one_seed(content):
    """The same without intervals."""
    if isinstance(content, dict):
        if set(content) == {"n", "mean", "low", "high"}:
            return content | {"n": 1, "low": None, "high": None}
        return {key: of_one_seed(inner) for key, inner in content.items()}
    return [of_one_seed(inner) for inner in content] if isinstance(content, list) else content


def test_one_seed_has_no_bands(store, results, analysis):
    store.write_json("analysis.json", of_one_seed(analysis))
    found = {s.name: s for s in further(store, results)}
    assert set(found) == set(SECTIONS)
    assert 'class="band"' not in str(found["representations"].figures)
    assert "over 1 seed," in str(found["representations"].figures)


@pytest.mark.parametrize(
    ("part", "broken", "name", "said"),
    [
        ("predictions", 3, "similarity", "predictions: 3 stands where a table should"),
        ("representations", {"methods": []}, "representations", "images, cka, embedding, class_names are not in it"),
        ("transfer", [{}], "transfer", "task, train, test, methods are not in it"),
        ("weights", {"counts": [1, 2, 3], "methods": "no"}, "weights", "'no' stands where a list should"),
    ],
)
def test_a_part_of_another_shape_is_said_in_its_place(store, analysis, part, broken, name, said):
    """And all others are shown."""
    store.write_json("analysis.json", analysis | {part: broken})
    found = further(store, collect(store))
    assert [s.name for s in found] == list(SECTIONS)
    (told,) = [s for s in found if not s.figures]
    assert told.name == name and said in told.sentence and "'equipoise analyze' writes it again" in told.sentence
    page = write_report(store).read_text()
    assert f'href="#{name}"' in page and "This cannot be shown" in page


def test_parts_that_do_not_fit_together_are_said(store, results, analysis):
    """Each value is of its type, but a run is counted that is not there; a method has no layers."""
    analysis["predictions"]["order"] = [0, 1, 3, 9]
    analysis["representations"]["methods"] = []
    store.write_json("analysis.json", analysis)
    found = {s.name: s for s in further(store, results)}
    assert list(found) == list(SECTIONS)
    for name, part in (("similarity", "predictions"), ("representations", "representations")):
        assert f"what is in {part} does not fit together" in found[name].sentence


@pytest.mark.parametrize(
    ("content", "said"), [({}, "made_by, study, question"), ({"schema": 99}, "written by a newer version")]
)
def test_a_file_that_cannot_be_read_at_all_is_said_once(store, results, content, said):
    store.write_json("analysis.json", content)
    (told,) = further(store, results)
    assert told.name == "analysis" and said in told.sentence


def test_a_network_with_other_layers_is_stretched(store, results, analysis):
    other = copy.deepcopy(analysis)
    deep = other["representations"]["methods"][2]
    deep["layers"] = [*LAYERS[:2], "stage2", "features"]
    for column in (*deep["separation"].values(), deep["nonzero"]):
        column.insert(2, e(0.35))
    for row, blocks in enumerate(other["representations"]["cka"]["layers"]):
        other["representations"]["cka"]["layers"][row] = [
            [[*r, 0.1] for r in block] if column == 2 else block for column, block in enumerate(blocks)
        ]
    store.write_json("analysis.json", other)
    found = {s.name: s for s in further(store, results)}
    assert len(found["representations"].figures) == SECTIONS["representations"]
