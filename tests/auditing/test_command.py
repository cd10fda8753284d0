"""`equipoise audit` on a terminal, for programs and for continuous integration."""

import io
import json
import shutil

import pytest
from typer.testing import CliRunner

from equipoise.auditing import audit, print_audit
from equipoise.cli import app
from equipoise.core.terminal import Terminal

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments), "--features", "none", "--device", "cpu"])


@pytest.fixture
def photos(tmp_path, written):
    written(tmp_path / "photos", [12, 11])
    return tmp_path / "photos"


def test_strict_is_for_what_is_serious(photos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(photos, "--strict")
    assert done.exit_code == 0, done.output
    assert "23 images of 2 classes" in done.output and "Page: audits/photos/audit.html" in done.output
    assert sorted(p.name for p in (tmp_path / "audits" / "photos").iterdir()) == [
        "audit.html",
        "audit.json",
        "files.csv",
        "groups.csv",
        "leave_out.csv",
    ]
    (photos / "digit0" / "broken.png").write_bytes(b"")
    assert run(photos).exit_code == 0
    done = run(photos, "--strict", "--out", tmp_path / "out")
    assert done.exit_code == 1 and "serious: 1 file cannot be read" in done.output
    assert (tmp_path / "out" / "audit.html").exists()


def test_json_alone_on_the_standard_output(photos, tmp_path):
    plain = json.loads(run(photos, "--json", "--out", tmp_path / "out").stdout)
    assert plain["classes"] == [{"class": "digit0", "train": 12}, {"class": "digit1", "train": 11}]
    assert plain == json.loads((tmp_path / "out" / "audit.json").read_text())


def test_eighty_columns(photos):
    (photos / "digit0" / "x.png").write_bytes(b"")
    (photos / ("long name " * 9)).mkdir()
    screen = io.StringIO()
    print_audit(audit(photos, features="none", device="cpu"), Terminal(file=screen, width=80))
    words = [line for line in screen.getvalue().splitlines() if not line.startswith("  ")]  # paths are not broken
    assert max(map(len, words)) <= 80
    assert "1 class without training images" in screen.getvalue()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_the_page_in_a_browser(photos, tmp_path, width, scheme):
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    shutil.copy(next((photos / "digit0").iterdir()), photos / "digit1" / "<img src=x onerror=alert(1)>.png")
    path = audit(photos, features="none", device="cpu").write(tmp_path / "out")
    troubles = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless"])
        page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(path.as_uri())
        assert page.locator("h1").inner_text() == "What is in photos"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is cut off"
        shown = page.locator("#two_classes img")
        assert shown.count() == 2 and all(i.evaluate("i => i.naturalWidth") for i in shown.all())
        before = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        page.locator("#theme").click()
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != before
        browser.close()
    assert troubles == []
