"""The first page of the records: its squares and cards, as data, as text and in headless Chromium."""

import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import pins
import pytest
from papers import GRAPH

from analysis.gallery import entries, index, scoreboard
from analysis.numbers.recorded import current, folders, of_earlier_world
from analysis.verdicts import claims, records
from analysis.verdicts.rule import SHOWN

RECORDS = Path(__file__).parents[3] / "results/published"


@pytest.fixture(scope="module")
def contents() -> index.Contents:
    return index.of_records(RECORDS, GRAPH)


@pytest.fixture(scope="module")
def page(contents) -> str:
    return index.render(contents)


@pytest.fixture(scope="module")
def file(page, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("gallery") / "index.html"
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture
def visit(browser, file):
    """Open the page at a width; on leaving, fail on console errors and on requests to elsewhere."""
    troubles: list[str] = []
    tabs = []

    def open_at(width: int, **how):
        tab = browser.new_page(viewport={"width": width, "height": 900}, **how)
        tab.on("console", lambda message: troubles.append(f"console: {message.text}"))
        tab.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        tab.on("request", lambda request: troubles.extend(elsewhere(request.url)))
        tab.goto(file.as_uri())
        tabs.append(tab)
        return tab

    def elsewhere(url: str) -> list[str]:
        return [] if url.startswith("data:") or url == file.as_uri() else [url]

    yield open_at
    for tab in tabs:
        tab.close()
    assert troubles == []


@pytest.mark.slow
def test_the_committed_first_page_is_what_the_records_say(page):
    """If not: snakemake --cores gallery"""
    pins.hold("pages of the records", page, (RECORDS / "index.html").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_each_claim_has_one_square_that_leads_to_it(contents, page):
    led = re.findall(r'<a class="square [\w-]+" href="([\w./-]+)#claim-([\w.-]+)"', page)
    judged = [
        (f"{record.name}/index.html", line.id)
        for record in current(RECORDS, GRAPH)
        for line in scoreboard.of_record(record, GRAPH)
        if line.kind != "sanity"  # which are counted
    ]
    assert sorted(led) == sorted(judged)
    assert len(judged) > 200
    for href, claim in led:
        assert f'id="claim-{claim}"' in _text(RECORDS / href), (href, claim)


_pages: dict[Path, str] = {}


def _text(path: Path) -> str:
    return _pages.setdefault(path, path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_record_of_an_earlier_world_is_listed_as_such(contents):
    """Not with what its recipe expects by now, nor with its claims."""
    earlier = [of_earlier_world(record, GRAPH) for record in folders(RECORDS)]
    assert [entry.shows == records.EARLIER for entry in contents.entries] == earlier
    assert not [
        entry for entry, is_it in zip(contents.entries, earlier, strict=True) if is_it and entry.lines
    ]


@pytest.mark.slow
def test_no_two_verdicts_share_a_sign(page):
    signs = {meaning.word: meaning.sign for meaning in entries.MEANINGS}
    assert tuple(signs) == claims.VERDICTS
    assert len(set(signs.values())) == len(signs)
    drawn = re.findall(r'data-verdict="([^"]+)"><span aria-hidden="true">(.)</span>', page)
    assert {(word, signs[word]) for word, _ in drawn} == set(drawn)


@pytest.mark.slow
def test_squares_tell_what_was_claimed_and_what_came_out(contents, page):
    text = unescape(page)
    for line in (line for entry in contents.entries for line in entry.lines if line.kind != "sanity"):
        assert f"<b>{line.word}:</b> {line.says} " in text
        assert not line.seeds or f"d = {line.ours}, " in text
        assert not line.cause or f"What in our world may cause it: {line.cause}" in text


@pytest.mark.slow
def test_the_columns_of_a_row_have_each_claim_once(contents):
    for entry in contents.entries:
        primary, secondary, ours = (group.lines for group in entry.groups)
        sanity = [line for line in entry.lines if line.kind == "sanity"]
        assert sorted(map(id, [*primary, *secondary, *ours, *sanity])) == sorted(map(id, entry.lines))
        assert {line.paper for line in ours} <= {scoreboard.OWN}
        assert not [line for line in (*primary, *secondary) if line.paper == scoreboard.OWN]
        assert {line.family for line in primary} <= {"primary"}
        assert sum(entry.tally.values()) == len(entry.lines) - len(sanity)


@pytest.mark.slow
def test_a_mark_says_what_the_two_paragraphs_of_the_readme_say(contents):
    """Of which records are registered, and which share one base model."""
    said = records.notice(RECORDS, GRAPH)
    names, which, of_bases = re.search(
        r"Registered before their runs: (.+?); not .* of each record (of|but) (.+) share one", said
    ).groups()
    assert {entry.name for entry in contents.entries if entry.registered} == set(names.split(", "))
    named = {entry.name for entry in contents.entries if entry.one_base == (which == "of")}
    assert named == set(of_bases.split(", "))


@pytest.mark.slow
def test_sanity_checks_are_counted_apart(contents, page):
    board = [line for entry in contents.entries for line in entry.lines]
    papers, ours, sanity = scoreboard.groups(board)
    held = sum(line.word == SHOWN for line in sanity)
    assert (
        f"{len(papers)} claims of papers and {len(ours)} of our own; beside them {held} of {len(sanity)}"
        in page
    )


def test_a_square_tells_its_claim_on_focus_and_on_a_hover_and_leads_to_it(visit):
    tab = visit(1200)
    square = tab.locator("#squares a[data-verdict=reversed]").first
    tip = square.locator(".tip")
    assert tip.bounding_box()["width"] <= 1
    square.hover()
    assert tip.bounding_box()["width"] > 300
    assert tip.inner_text().startswith("reversed: ")
    tab.mouse.move(0, 0)
    assert tip.bounding_box()["width"] <= 1
    square.focus()
    assert tip.bounding_box()["width"] > 300
    assert tip.bounding_box()["y"] >= square.bounding_box()["y"] + square.bounding_box()["height"]


def test_what_is_picked_stands_alone_in_squares_rows_and_cards(visit):
    tab = visit(1200)
    squares, rows, cards = (
        tab.locator(f"{where}:visible")
        for where in ("#squares a[data-verdict]", "#squares tr[data-record]", ".card")
    )
    count = tab.locator("#filter output")
    every, listed = squares.count(), rows.count()
    assert cards.count() == listed
    tab.click("#filter summary")
    assert count.inner_text() == f"{every} of {every} claims, {listed} of {listed} recipes"
    tab.select_option("[name=paper]", "arXiv 2503.14476")
    assert 0 < squares.count() < every
    assert 0 < rows.count() == cards.count() < listed
    assert set(squares.evaluate_all("all => all.map(one => one.dataset.paper)")) == {"arXiv 2503.14476"}
    tab.select_option("[name=verdict]", "shown")
    assert set(squares.evaluate_all("all => all.map(one => one.dataset.verdict)")) == {"shown"}
    tab.fill("#filter [name=words]", "zzz")
    assert (squares.count(), rows.count(), cards.count()) == (0, 0, 0)
    assert count.inner_text() == f"0 of {every} claims, 0 of {listed} recipes"
    tab.get_by_role("button", name="Show all", exact=True).click()
    count.filter(has_text=f"{every} of {every} claims").wait_for()
    tab.select_option("[name=scale]", "small")
    small = rows.evaluate_all("all => all.map(one => one.dataset.record)")
    assert small == [record.name for record in folders(RECORDS) if record.name.endswith("-small")]
    tab.select_option("[name=scale]", "")
    tab.select_option("[name=registered]", "no")
    assert 0 < rows.count() < listed
    assert rows.locator(".mark[title^=registered]").count() == 0
    tab.select_option("[name=registered]", "")
    tab.fill("#filter [name=words]", "GRPO raises accuracy")
    assert "GRPO raises accuracy" in squares.first.inner_text()
    assert squares.count() < 9


def test_without_scripts_all_stand_and_no_filter_does(visit):
    tab = visit(1200, java_script_enabled=False)
    assert tab.locator("#filter").is_hidden()
    assert tab.locator("#squares tr[data-record]:visible").count() == len(folders(RECORDS))
    assert tab.locator(".card:visible").count() == len(folders(RECORDS))


@pytest.mark.parametrize("width", [390, 768, 1400])
def test_the_page_never_scrolls_sideways(visit, width):
    tab = visit(width)
    tab.click("#filter summary")
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    for place in (0, 30, 60, -1):  # a tip keeps to the page
        tip = tab.locator("#squares a[data-verdict]").nth(place)
        tip.focus()
        box = tip.locator(".tip").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert tab.evaluate("document.documentElement.scrollWidth") == width
    levels = tab.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_first_squares_stand_on_the_first_screen(visit):
    tab = visit(1400)
    assert tab.locator("#squares tr[data-record]").nth(5).bounding_box()["y"] < 900


def test_print_has_squares_with_their_signs_and_no_filter(visit):
    tab = visit(700)
    tab.emulate_media(media="print")
    assert tab.locator("#filter").is_hidden()
    assert tab.locator("#squares a[data-verdict]").first.inner_text().strip()
    assert tab.locator(".tip:visible").count() == 0
    assert tab.evaluate("document.documentElement.scrollWidth") <= 700


def test_axe_has_no_serious_finding(visit):
    """Deque's axe-core, vendored by axe-playwright-python; in light and dark, on a desk and a phone."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for width, scheme in ((1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")):
        tab = visit(width)
        tab.emulate_media(color_scheme=scheme)
        tab.click("#filter summary")
        tab.locator("#squares a[data-verdict=reversed]").first.focus()
        violations = axe.run(tab).response["violations"]
        bad = [finding for finding in violations if finding["impact"] in ("serious", "critical")]
        assert not bad, [(rule["id"], [node["target"] for node in rule["nodes"]][:5]) for rule in bad]
