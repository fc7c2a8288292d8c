"""The manual as a site: it builds, searches, is readable in light and dark, and needs no network."""

import functools
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
NAV = {
    title: pages
    for entry in yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    for title, pages in entry.items()
}
TUTORIALS = [page for entry in NAV["Tutorials"] for page in entry.values()]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    """Where the manual is served, built as its first line of configuration says."""
    site = tmp_path_factory.mktemp("manual")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def visit(browser, address):
    """Open a page of the manual; on leaving, fail on errors and on requests to elsewhere."""
    troubles: list[str] = []
    tabs = []

    def open_at(page: str, width: int = 1400, scheme: str = "light"):
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("console", lambda message: troubles.extend([message.text] * (message.type == "error")))
        tab.on("request", lambda request: troubles.extend(elsewhere(request.url)))
        tab.goto(f"{address}/{page}", wait_until="networkidle")
        tabs.append(tab)
        return tab

    def elsewhere(url: str) -> list[str]:
        return [] if url.startswith(("data:", f"{address}/")) else [url]

    yield open_at
    for tab in tabs:
        tab.close()
    assert troubles == []


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index.html", "ablation.html"])
def test_a_page_is_readable(visit, page, width, scheme):
    """On a desk and a phone, in the scheme that the reader's system asks for."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab = visit(page, width, scheme)
    found = axe.run(tab).response["violations"]
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    assert not bad, [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in bad]
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark")


def test_a_reader_chooses_dark_and_keeps_it(visit):
    tab = visit("index.html")
    mode = "document.documentElement.getAttribute('data-bs-theme')"
    assert tab.evaluate(mode) == "light"
    tab.locator("#theme-menu").click()
    tab.locator("[data-bs-theme-value=dark]").click()
    assert tab.evaluate(mode) == "dark"
    tab.reload()
    assert tab.evaluate(mode) == "dark"


def test_no_page_is_wider_than_a_phone_or_asks_for_anything_elsewhere(visit):
    tab = visit("index.html", 390)
    pages = {
        link.get_attribute("href") for link in tab.locator(".navbar .dropdown-menu a.dropdown-item").all()
    }
    assert {page.removesuffix(".md") for page in TUTORIALS} < {page.removesuffix(".html") for page in pages}
    for page in sorted(pages):
        tab.goto(f"{tab.url.rpartition('/')[0]}/{page}", wait_until="networkidle")
        assert tab.evaluate("document.documentElement.scrollWidth") == 390, page


def test_search_finds_a_page_by_a_word(visit):
    tab = visit("index.html")
    tab.keyboard.press("s")
    tab.locator("#mkdocs-search-query").press_sequentially("precondition")
    tab.locator("#mkdocs-search-results").get_by_text("How verdicts are made").first.click()
    tab.wait_for_url("**/verdicts.html*")


def test_every_page_is_in_the_navigation():
    pages = [
        page for part in NAV.values() if isinstance(part, list) for entry in part for page in entry.values()
    ]
    assert sorted(["index.md", *pages]) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_begins_with_what_it_leads_to_and_how_long_it_takes(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    first = next(part for part in text.split("\n\n") if not part.startswith(("#", "!", "```")))
    assert re.match(r"At the end ", first)
    assert re.search(r"takes\s+(a|an|two|four|ten)\s", first)
    assert re.search(r"\b(minutes?|hour)\b", first)
