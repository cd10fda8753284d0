"""The page in a real browser: no error, no request, and the reader's controls work."""

import shutil
from pathlib import Path

import pytest

from equipoise.report import collect, write_report

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, store):
    """Opens the report; at the end, whatever the page complained of or asked for must be nothing."""
    study = store.read_json("study.json")
    study["question"] += " <script>window.broken = true</script>"
    store.write_json("study.json", study)
    path = write_report(store)
    troubles, contexts = [], []

    def open_page(width=1400, scheme="light"):
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
    return page.locator("#ranking tbody th.c-method a").all_inner_texts()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 900, 390])
def test_no_sideways_scrolling(visit, width, scheme, tmp_path):
    page = visit(width, scheme)
    for everything_open in (False, True):
        page.evaluate("on => document.querySelectorAll('details').forEach(d => { d.open = on; })", everything_open)
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("window.broken") is None
    page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
    assert Path(tmp_path / f"{width}-{scheme}.png").stat().st_size > 10_000


def test_long_words_break_instead_of_widening_the_page(visit, store):
    study = store.read_json("study.json")
    study["question"] = study["methods"][2]["name"] = "x" * 150
    study["methods"][2]["recipe"]["loss"] = "y" * 300
    store.write_json("study.json", study)
    write_report(store)
    page = visit(390)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_one_drawing_of_the_two_is_seen(visit):
    for width, seen in ((1400, "wide"), (390, "narrow")):
        page = visit(width)
        for which in ("wide", "narrow"):
            assert page.locator(f"figure svg.{which}").first.is_visible() == (which == seen)


def test_sorts_by_click_and_by_key(visit, store):
    results = collect(store)
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
    assert "grouped" in page.locator("#ranking table").get_attribute("class")


def test_unknown_values_stay_last(visit, store, demo):
    for seed in range(6):
        store.remove(demo.key_of("focal", seed))
    write_report(store)
    page = visit()
    for _ in range(2):
        page.locator("#ranking th.c-accuracy button").click()
        assert names(page)[-1] == "focal"


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
    page.reload()  # the choice is kept
    assert (brightness() > 200) != (first > 200)
    page.locator("#theme").click()
    assert brightness() == first


def test_legend_hides_and_fades(visit):
    page = visit()
    line = page.locator("#curves .series[data-method='2'] .line").first
    button = page.locator("#classes .legend button[data-method='2']")
    button.click()
    assert not line.is_visible()
    assert page.locator("#curves .legend button[data-method='2']").get_attribute("aria-pressed") == "false"
    button.click()
    assert line.is_visible()
    page.locator("#curves .legend button[data-method='1']").hover()
    faded = page.locator("#curves .series.faded").evaluate_all("parts => parts.map(p => p.dataset.method)")
    assert set(faded) == {"0", "2", "3"}


def test_a_link_opens_the_recipe(visit):
    page = visit()
    recipe = page.locator("#recipe-2")
    assert recipe.get_attribute("open") is None
    page.locator("#ranking a", has_text="ldam").click()
    page.wait_for_function("document.getElementById('recipe-2').open")


def test_paper_shows_everything(visit):
    page = visit()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
