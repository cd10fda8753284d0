"""The page: whole, safe with hostile text, and complete whatever the state of the study."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from equipoise.report import collect, render_page, sections_of
from equipoise.store import Store

HOSTILE = "</script><script>alert('x')</script>\"><img src=x onerror=alert(1)>{{ 7*7 }}"
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Tree(HTMLParser):
    """Fails on a tag that is not closed in order; gathers text, attributes and tags."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words, self.values, self.sections = [], [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.sections.append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


@pytest.fixture(scope="module")
def page(results, _made):
    return render_page(results, sections_of(_made, results))


def test_says_what_it_should(page, demo):
    words = " ".join(Tree(page).words)
    for part in (
        "On long-tailed digits, what beats plain cross-entropy?",
        "cannot support any claim",  # six seeds, three methods
        "1 of 24 runs is missing and 1 failed",
        "22 of 24 runs",
        "the loss is <nan> at step 41",
        "at step 41",
        "data0003",
        "2.6.0",
        "ldam(max_margin=0.5, scale=30.0)",
        "other network",
        "Test set first opened",
        demo.key_of("focal", 4),
    ):
        assert part in words


def test_is_one_file(page):
    tree = Tree(page)
    assert not {"link", "iframe", "object", "embed", "img"} & set(tree.tags)
    for name, text in tree.values:
        if name in ("src", "href", "action", "data"):
            assert text.startswith("#"), (name, text)
    assert "url(" not in page
    assert "@import" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_only_its_own_script_may_run(page):
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    data = re.findall(r"<script type=\"application/json\" id=\"data\">(.*?)</script>", page, re.S)
    assert (len(scripts), len(data), page.count("<script")) == (1, 1, 2)
    assert set(json.loads(data[0])) == {"metric", "seeds", "classes", "methods", "pairs"}
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page).group(1).replace("&#39;", "'")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_hostile_text_stays_text(store, demo):
    """In the question, a method's and a class's name, a recipe, an error, a version: all come from files."""
    study = store.read_json("study.json")
    study["question"] = study["name"] = HOSTILE
    study["methods"][2]["name"] = HOSTILE
    study["methods"][2]["recipe"]["loss"] = HOSTILE
    store.write_json("study.json", study)
    for record in [record for record in store.records() if record.finished]:
        outputs = {"test": store.test_sealed(record.key)}
        store.remove(record.key)
        names = (HOSTILE, *demo.CLASS_NAMES[1:])
        store.put(replace(record, class_names=names, versions={HOSTILE: HOSTILE}, device=HOSTILE), outputs)
    store.remove(demo.key_of("focal", 2))
    store.put(demo.record_of("focal", 2, state="failed", error=HOSTILE, recipe={HOSTILE: HOSTILE}))
    page = demo.page_of(store)
    tree = Tree(page)
    assert (page.count("<script"), page.count("</script")) == (2, 2)
    assert "<img" not in page
    assert not [name for name, _ in tree.values if name.startswith("on")]
    assert "".join(tree.words).count(HOSTILE) > 8
    assert "49" not in re.findall(r"<h1.*?>(.*?)</h1>", page)[0]


def test_each_id_once_and_each_link_lands(page):
    tree = Tree(page)
    ids = [text for name, text in tree.values if name == "id"]
    assert len(ids) == len(set(ids))
    links = {text[1:] for name, text in tree.values if name == "href"}
    assert links
    assert links <= set(ids)


def test_headings_can_be_pressed_and_say_their_order(page):
    tables = re.findall(r'<table class="sortable.*?</table>', page, re.S)
    assert len(tables) == 3  # ranking, pairs, classes
    for table in tables:
        headings = re.findall(r'<th scope="col".*?</th>', table, re.S)
        assert all('<button type="button"' in h and "aria-sort=" in h for h in headings)
        for row in re.findall(r"<tr.*?>(.*?)</tr>", table, re.S)[1:]:
            assert row.count("data-sort=") == len(headings)


def test_landmarks_and_captions(page):
    tree = Tree(page)
    assert [tree.tags.count(tag) for tag in ("header", "nav", "main", "h1")] == [1, 1, 1, 1]
    assert tree.tags.count("table") == tree.tags.count("caption") > 3
    ids = {text for name, text in tree.values if name == "id"}
    assert all(section["aria-labelledby"] in ids for section in tree.sections)
    assert tree.tags.count("svg") == page.count('role="img"') + page.count('aria-hidden="true"')
    assert page.index('class="skip"') < page.index("<header")


def test_the_sections_and_what_they_show(page):
    sections = re.findall(r'<section id="([\w-]+)"', page)
    assert sections == ["ranking", "methods", "compare", "classes", "training", "calibration", "failures", "provenance"]
    assert re.findall(r'<a href="#([\w-]+)">', page[page.index("<nav") : page.index("</nav>")]) == sections


def test_a_method_in_full(page, results):
    """Two curves, its classes, reliability and confusions; where nothing was trained, no curves."""
    for method in results.methods:
        part = page[page.index(f'<details id="method-{method.index}"') :].partition("</details>")[0]
        assert part.count('role="img"') == 5
        assert all(run.key in part for run in method.runs)
        assert "Most often confused" in part


def test_the_summary_says_what_it_cost(page, results):
    words = " ".join(
        " ".join(Tree(page[: page.index('<section id="ranking"')] + "</main></body></html>").words).split()
    )
    seconds = sum(run.record.seconds for run in results.runs if run.record)
    assert f"Computing time {int(seconds) // 60} min {round(seconds) % 60} s" in words
    assert "Hardware cpu" in words
    assert "4 methods × 6 seeds" in words


def test_a_single_method_has_nothing_to_compare(store, demo):
    study = store.read_json("study.json")
    store.write_json("study.json", study | {"methods": study["methods"][:1]})
    assert '<section id="compare"' not in demo.page_of(store)


def test_a_hundred_runs_stay_small(demo):
    """Ten methods, ten seeds, a hundred classes, two hundred epochs and nine curves each."""
    page = demo.page_of(demo.Imagined(methods=10, seeds=10, classes=100, epochs=200))
    assert len(page.encode()) < 8_000_000
    assert len(re.findall(r"<[a-z]", page)) < 40_000  # a browser takes its time for every element


def test_a_study_without_runs(tmp_path, demo):
    store = Store(tmp_path / "empty").create()
    demo.write_study(store)
    words = " ".join(Tree(demo.page_of(store)).words)
    assert "24 of 24 runs are missing" in words
    assert "Test set first opened never" in " ".join(words.split())


def test_a_whole_study_has_no_notice(store, demo):
    for seed in (2, 4):
        store.remove(demo.key_of("focal", seed))
        store.put(demo.record_of("focal", seed), {"test": demo.simulated("focal", seed)})
    words = " ".join(Tree(demo.page_of(store)).words)
    assert "not whole" not in words
    assert "None: all 24 runs finished." in words


def test_of_many_methods_the_best_are_shown_first(store):
    study = store.read_json("study.json")
    study["methods"] += [study["methods"][3] | {"name": f"copy {i}"} for i in range(8)]
    store.write_json("study.json", study)
    results = collect(store)
    page = render_page(results, sections_of(store, results))
    assert "all 12 are in the ranking" not in page  # so many still fit on the first screen
    legend = re.search(r'<div class="legend".*?</div>', page, re.S).group(0)
    pressed = set(re.findall(r'data-method="(\d+)" aria-pressed="true"', legend))
    best = {str(m.index) for m in results.methods if m.rank < 7}
    assert pressed == best | {"0"}
    assert legend.count("<button") == 12


def test_of_very_many_methods_all_intervals_are_in_the_ranking(demo):
    page = demo.page_of(demo.Imagined(methods=15, seeds=2, classes=3, epochs=2))
    assert "all 15 are in the ranking" in page
    assert "Intervals of all 15 methods" in page


def test_a_look_before_the_end_is_told_at_the_top_for_ever(store, demo):
    collect(store)  # one run is missing: this is a peek
    store.put(demo.record_of("focal", 4), {"test": demo.simulated("focal", 4)})
    page = demo.page_of(store)
    top = " ".join(Tree(page[: page.index('<section id="ranking"')] + "</main></body></html>").words)
    assert "were looked at on" in top and "before the study had ended" in top
