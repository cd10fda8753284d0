"""The page: whole, safe with hostile text, and complete whatever the state of the study."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from equipoise.report import collect, render_page
from equipoise.store import Store

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>{{ 7*7 }}"
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Tree(HTMLParser):
    """Fails on a tag that is not closed in order; gathers text, attributes and tags."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words, self.values = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


@pytest.fixture
def page(store):
    return render_page(collect(store))


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
    assert len(scripts) == 1
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
    for seed in range(6):
        store.remove(demo.key_of("plain", seed))
        names = (HOSTILE, *demo.CLASS_NAMES[1:])
        record = demo.record_of("plain", seed, class_names=names, versions={HOSTILE: HOSTILE}, device=HOSTILE)
        store.put(record, {"test": demo.simulated("plain", seed)})
    store.remove(demo.key_of("focal", 2))
    store.put(demo.record_of("focal", 2, state="failed", error=HOSTILE, recipe={HOSTILE: HOSTILE}))
    page = render_page(collect(store))
    tree = Tree(page)
    assert page.count("<script") == 1
    assert "<img" not in page
    assert not [name for name, _ in tree.values if name.startswith("on")]
    assert "".join(tree.words).count(HOSTILE) > 8
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", page)[0]


def test_each_id_once_and_each_link_lands(page):
    tree = Tree(page)
    ids = [text for name, text in tree.values if name == "id"]
    assert len(ids) == len(set(ids))
    links = {text[1:] for name, text in tree.values if name == "href"}
    assert links
    assert links <= set(ids)


def test_headings_can_be_pressed_and_say_their_order(page):
    table = re.search(r'<table class="sortable grouped">.*?</table>', page, re.S).group(0)
    headings = re.findall(r'<th scope="col".*?</th>', table, re.S)
    assert len(headings) == len(re.findall(r"<tr.*?>(.*?)</tr>", table, re.S)[1].split("data-sort=")) - 1
    assert all('<button type="button"' in h and "aria-sort=" in h for h in headings)


def test_a_study_without_runs(tmp_path, demo):
    store = Store(tmp_path / "empty").create()
    demo.write_study(store)
    words = " ".join(Tree(render_page(collect(store))).words)
    assert "24 of 24 runs are missing" in words
    assert "Test set first opened never" in " ".join(words.split())


def test_a_whole_study_has_no_notice(store, demo):
    for seed in (2, 4):
        store.remove(demo.key_of("focal", seed))
        store.put(demo.record_of("focal", seed), {"test": demo.simulated("focal", seed)})
    words = " ".join(Tree(render_page(collect(store))).words)
    assert "not whole" not in words
    assert "None: all 24 runs finished." in words


def test_of_many_methods_the_best_are_shown_first(store):
    study = store.read_json("study.json")
    study["methods"] += [study["methods"][3] | {"name": f"copy {i}"} for i in range(8)]
    store.write_json("study.json", study)
    results = collect(store)
    legend = re.search(r'<div class="legend".*?</div>', render_page(results), re.S).group(0)
    pressed = set(re.findall(r'data-method="(\d+)" aria-pressed="true"', legend))
    best = {str(m.index) for m in results.methods if m.rank < 7}
    assert pressed == best | {"0"}
    assert legend.count("<button") == 12
