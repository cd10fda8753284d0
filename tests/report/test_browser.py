"""The page in a real browser: no error, no request, and the reader's controls work."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from equipoise.report import collect, combine_studies, make_board, write_board, write_combined, write_report
from equipoise.store import Store
from equipoise.study import How, Study
from equipoise.study.run.job import do, jobs_of

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>"


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def report(_made, tmp_path_factory):
    """The page of the simulated study, its question, a method's and a class's name hostile."""
    store = Store(shutil.copytree(_made.path, tmp_path_factory.mktemp("browser") / "study"))
    study = store.read_json("study.json")
    study["question"] += HOSTILE
    study["methods"][2]["name"] = f"ldam {HOSTILE}"
    store.write_json("study.json", study)
    return write_report(store)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The page of a study that was really trained, if briefly: three methods and two seeds on a few digits."""
    options = {"model": "cnn_small(width=4)", "epochs": 2, "batch_size": 32}
    study = Study.from_dict(
        {
            "question": "On a few digits, what helps?",
            "baseline": "plain",
            "seeds": 2,
            "task": {"name": "digits", "imbalance": "long_tailed", "ratio": 10, "n_max": 30},
            "base": options,
            "methods": {"plain": {}, "focal": {"loss": "focal"}, "adjusted": {"posthoc": "logit_adjust"}},
        }
    )
    store = Store(tmp_path_factory.mktemp("real") / "study").create()
    store.write_json("study.json", study.to_dict())
    for job in jobs_of(recipe for _, recipe in study.recipes()):
        do(job, store, How(torch.device("cpu")), lambda epoch, curves: None, lambda: False)
    return write_report(store)


@pytest.fixture
def visit(browser, report):
    """Opens a page; at the end, whatever it complained of or asked for must be nothing."""
    troubles, contexts = [], []

    def open_page(width=1400, scheme="light", path=report):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: None if request.url == path.as_uri() else troubles.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def names(page):
    """Of the rows that are seen."""
    return [link.inner_text() for link in page.locator("#ranking tbody th.c-method a").all() if link.is_visible()]


def expected(report):
    return collect(Store(report.parent))


@pytest.mark.parametrize("width", [1400, 390])
def test_a_way_through_a_real_study(visit, real, width):
    page = visit(width, path=real)
    assert page.locator("h1").inner_text() == "On a few digits, what helps?"
    everyone = names(page)
    assert sorted(everyone) == ["adjusted", "focal", "plain"]
    page.locator("#ranking th.c-method button").click()
    assert names(page) == sorted(everyone)
    page.get_by_label("Filter").fill("logit_adjust")
    assert names(page) == ["adjusted"]
    page.get_by_label("Filter").fill("")
    page.locator("#ranking a", has_text="focal").click()
    page.locator("#methods details[open]").first.wait_for(state="attached")
    assert page.locator("#methods details[open] svg[role=img]").count() == 5
    page.locator("#first").select_option(label="focal")
    page.locator("#second").select_option(label="adjusted")
    assert (
        "adjusted" in page.locator("#difference").inner_text() and "focal" in page.locator("#difference").inner_text()
    )
    assert page.locator("#pair figure").count() == 3
    before = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != before
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 1001, 390])
def test_no_sideways_scrolling(visit, width, scheme, tmp_path):
    page = visit(width, scheme)
    for everything_open in (False, True):
        page.evaluate("on => document.querySelectorAll('details').forEach(d => { d.open = on; })", everything_open)
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("window.broken") is None
    page.screenshot(path=tmp_path / "shot.png")
    assert Path(tmp_path / "shot.png").stat().st_size > 10_000


def test_long_words_break_instead_of_widening_the_page(visit, store):
    study = store.read_json("study.json")
    study["question"] = study["methods"][2]["name"] = "x" * 150
    study["methods"][2]["recipe"]["loss"] = "y" * 300
    store.write_json("study.json", study)
    page = visit(390, path=write_report(store))
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_summary_fits_one_screen_and_the_table_the_page(browser, demo, tmp_path):
    """With as many methods as the summary shows."""
    path = tmp_path / "page.html"
    path.write_text(demo.page_of(demo.Imagined(methods=14, seeds=3, classes=5, epochs=3)))
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(path.as_uri())
    box = page.locator("section.lead").bounding_box()
    assert box["y"] + box["height"] <= 900
    scroll = page.locator("#ranking .scroll").first
    assert scroll.evaluate("part => part.scrollWidth <= part.clientWidth")
    page.close()


def test_one_drawing_of_the_two_is_seen(visit):
    for width, seen in ((1400, "wide"), (390, "narrow")):
        page = visit(width)
        for which in ("wide", "narrow"):
            assert page.locator(f"figure svg.{which}").first.is_visible() == (which == seen)


def test_sorts_by_click_and_by_key(visit, report):
    results = expected(report)
    page = visit()
    before = names(page)
    assert before == [m.name for m in results.methods]
    heading = page.locator("#ranking th.c-ece")
    heading.locator("button").click()
    low_first = sorted(before, key=lambda n: next(m for m in results.methods if m.name == n).estimates["ece"].mean)
    assert names(page) == low_first
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert names(page) == low_first[::-1]
    assert heading.get_attribute("aria-sort") == "descending"
    page.locator("#ranking th.c-method button").click()
    assert names(page) == sorted(before)
    page.locator("#ranking th.c-tier button").click()
    assert names(page) == before
    assert "grouped" in page.locator("#ranked").get_attribute("class")


def test_unknown_values_stay_last(visit, store, demo):
    for seed in range(6):
        store.remove(demo.key_of("focal", seed))
    page = visit(path=write_report(store))
    for _ in range(2):
        page.locator("#ranking th.c-accuracy button").click()
        assert names(page)[-1] == "focal"


def test_filters_by_name_standing_and_recipe(visit):
    page = visit()
    everyone = names(page)
    box = page.get_by_label("Filter")
    for typed, kept in (
        ("FOCAL", ["focal"]),
        ("gamma=2", ["focal"]),
        ("baseline", ["plain"]),
        ("nobody", []),
        ("", everyone),
    ):
        box.fill(typed)
        assert names(page) == kept
        assert page.locator("#count").inner_text() == (f"{len(kept)} of 4 methods" if typed else "")
    box.fill("a")
    page.locator("#ranking th.c-method button").click()  # sorting keeps the filter
    assert names(page) == sorted(n for n in everyone if "a" in n)


def test_a_link_opens_the_method_again_and_again(visit):
    page = visit()
    method = page.locator("#method-1")
    assert not method.locator("svg[role=img]").first.is_visible()
    for _ in range(2):
        page.locator("#ranking a", has_text="balanced_softmax").click()
        page.locator("#method-1[open]").wait_for(state="attached")  # a script of ours the page's policy would refuse
        assert method.locator("svg[role=img]").count() == 5
        assert page.evaluate("document.activeElement.closest('details').id") == "method-1"
        method.locator("summary").click()


def test_compares_any_two(visit, report):
    results = expected(report)
    page = visit()
    by_index = {m.index: m for m in results.methods}
    for first, second in ((0, 1), (1, 0), (0, 2), (3, 1)):
        page.locator("#first").select_option(str(first))
        page.locator("#second").select_option(str(second))
        one, two = by_index[first], by_index[second]
        scores = zip(one.scores(results.metric), two.scores(results.metric), strict=True)
        gains = [b - a for a, b in scores if a == a and b == b]
        mean = 100 * sum(gains) / len(gains)
        words = page.locator("#difference").inner_text()
        side = "above" if mean > 0 else "below"
        size = float(words.partition(f"{two.name} is ")[2].partition(f" points {side} {one.name}")[0])
        assert size == pytest.approx(abs(mean), abs=0.051)
        same = sum(gain * mean > 0 for gain in gains)
        assert f"{len(gains)} pairs, {side} in {same}" in words
        joined = page.locator("#pair figure").nth(0).locator("line.join")
        assert joined.count() == len(gains)
        assert page.locator("#pair figure").count() == 3
    page.locator("#second").select_option("3")
    assert page.locator("#difference").inner_text() == "Choose two different methods."
    assert page.locator("#pair figure").count() == 0


def test_swapping_turns_the_difference(visit):
    page = visit()
    before = page.locator("#difference").inner_text()
    page.locator("#swap").click()
    after = page.locator("#difference").inner_text()
    assert ("above" in before) != ("above" in after)
    assert before.partition("For this pair")[2] == after.partition("For this pair")[2]


def test_comparing_with_a_method_that_never_ran(visit, store, demo):
    for seed in range(6):
        store.remove(demo.key_of("focal", seed))
    page = visit(path=write_report(store))
    page.locator("#second").select_option("3")
    assert "share no finished seed" in page.locator("#difference").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_and_the_button(visit, scheme):
    page = visit(scheme=scheme)

    def brightness():
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return int(colour.removeprefix("rgb(").split(",")[0])

    first = brightness()
    assert (first > 200) == (scheme == "light")
    page.locator("#theme").click()
    assert (brightness() > 200) != (first > 200)
    for _ in range(20):  # the choice is kept; a busy browser may take a moment to write it down
        page.reload()
        if brightness() != first:
            break
        page.wait_for_timeout(100)
    assert (brightness() > 200) != (first > 200)
    page.locator("#theme").click()
    assert brightness() == first


def test_legend_hides_and_fades(visit):
    page = visit()
    line = page.locator("#training .series[data-method='2'] .line").first
    button = page.locator("#classes .legend button[data-method='2']")
    button.click()
    assert not line.is_visible()
    assert page.locator("#calibration .rows .series[data-method='2']").first.is_visible()  # a row keeps its place
    assert page.locator("#training .legend button[data-method='2']").get_attribute("aria-pressed") == "false"
    button.click()
    assert line.is_visible()
    page.locator("#training .legend button[data-method='1']").hover()
    faded = page.locator("#training .series.faded").evaluate_all("parts => parts.map(p => p.dataset.method)")
    assert set(faded) == {"0", "2", "3"}


def test_the_keyboard_reaches_everything(visit):
    """Tabbing from the top passes the skip link, the table's buttons and links, the selects and the summaries."""
    page = visit()
    page.keyboard.press("Tab")
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "question"
    seen = set()
    for _ in range(50):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("(e => e.id || e.className || e.tagName)(document.activeElement)"))
    assert {"filter", "first", "second", "swap", "scroll", "SUMMARY"} <= seen
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_paper_shows_everything(visit):
    page = visit(scheme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert not page.locator("#filter").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_a_page_of_a_hundred_runs_works(visit, demo, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(demo.page_of(demo.Imagined(methods=20, seeds=5, classes=60, epochs=100)))
    page = visit(path=path)
    assert len(names(page)) == 20
    assert page.locator("#pair figure").count() == 3
    assert len(json.loads(page.locator("#data").text_content())["pairs"]) == 190


@pytest.mark.parametrize("width", [1400, 390])
def test_several_data_sets_on_one_page(visit, eight, demo, tmp_path, width):
    others = [demo.elsewhere(eight, name, shift) for name, shift in (("svhn", 0.02), ("cifar10", -0.01))]
    page = visit(width, path=write_combined(combine_studies([eight, *others]), tmp_path))
    assert page.locator("h1").inner_text() == "3 methods against plain on 3 data sets"
    methods = page.locator("#methods tbody th")
    page.locator("#methods thead button", has_text="Method").click()
    assert methods.all_inner_texts() == sorted(methods.all_inner_texts())
    page.locator("summary").click()
    assert page.locator("#data figure svg").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [1400, 390])
def test_a_board(visit, eight, demo, tmp_path, width):
    page = visit(
        width, path=write_board(make_board([eight, demo.elsewhere(eight, HOSTILE.replace("/", ""))]), tmp_path)
    )
    rows = page.locator("#ranked tbody tr:visible")
    page.locator("th.c-balanced_accuracy button").click()
    scores = [float(cell.split()[0]) for cell in page.locator("td.c-balanced_accuracy").all_inner_texts()]
    assert scores == sorted(scores, reverse=True) and rows.count() == len(scores)
    page.get_by_label("Filter").fill("ldam digits")
    assert rows.count() == 1
    page.locator("summary").click()
    assert page.locator("details li").count() == 4
    assert page.evaluate("[window.broken, document.documentElement.scrollWidth]") == [None, width]
