"""The section as a whole: its files and its page."""

import re
from itertools import pairwise

import pytest
from toy_run import HOSTILE, changed, draw_only

from analysis import report
from analysis.stage_ladder.build import build
from analysis.stage_ladder.view import view

TABLES = ("stage_measures", "stage_funnel", "stage_cost")


@pytest.fixture(scope="module")
def out(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "report"
    with pytest.MonkeyPatch.context() as patch:
        draw_only({"stages-over-training", "reward-by-domain", "rejection-sampling"}, patch)
        report.command(run, folder.with_suffix(".html"), "report")
    return folder


@pytest.mark.slow
def test_its_files_are_written(out):
    for name in TABLES:
        for suffix in ("csv", "md", "tex", "html"):
            assert (out / f"{name}.{suffix}").stat().st_size > 100
    assert "Zero, paper" in (out / "stage_measures.md").read_text()
    for name in ("stages-over-training", "reward-by-domain", "rejection-sampling"):
        assert (out / f"figures/{name}.svg").exists()


@pytest.mark.slow
def test_a_recipe_without_a_ladder_has_none_of_it(run, table, out, monkeypatch):
    plain = changed(run, stage_ladder=None)
    assert build(plain, table) is None
    assert not view(plain, table, None).tables
    draw_only(set(), monkeypatch)
    folder = out.with_name("plain")
    folder.mkdir()
    for name in TABLES:  # of a report when the recipe had the key
        for suffix in ("csv", "tex"):
            (folder / f"{name}.{suffix}").write_text((out / f"{name}.{suffix}").read_text())
    report.command(plain, folder.with_suffix(".html"), "report")
    assert not list(folder.glob("stage_*"))
    text = folder.with_suffix(".html").read_text()
    assert "stage-ladder" not in text
    assert "One prompt, answered by every step" not in text


def test_a_ladder_that_has_not_run_has_no_section(run, table):
    nothing = table[~table.metric.str.contains("/")]
    assert build(run, nothing) is None


@pytest.mark.slow
def test_the_page_says_what_a_reader_asks_for(out):
    text = out.with_suffix(".html").read_text()
    for wanted in (
        '<a href="#stage-ladder">Stages</a>',
        "compare the shape of a column, never its level",
        "The paper's numbers: AIME 2024 pass@1, R1-Zero (Nature Tab. 3);",
        "79.8 %; 97.3 %",
        "One prompt, answered by every step",
        "language consistency 1.00",
        "Dashed: Zero, a branch beside the others.",
        "What each filter left",
        "sift, again",
    ):
        assert wanted in text, wanted
    assert HOSTILE not in text
    assert "<img src=x" not in text
    assert not re.search(r"""<[^<>]*\b(src|srcset|poster|action)=["']?(?!data:)\w""", text)


def test_it_opens_offline_at_every_width_and_untrusted_text_stays_text(out, browser, tmp_path):
    page = out.with_suffix(".html")
    for width in (360, 1200):
        tab = browser.new_page(viewport={"width": width, "height": 800})
        asked: list[str] = []
        tab.on("request", lambda request, asked=asked: asked.append(request.url))
        tab.goto(page.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        assert tab.locator("#stage-ladder figure").count() == 3
        assert tab.evaluate("[...document.images].every(i => i.naturalWidth > 0 && i.alt)")
        assert HOSTILE in tab.locator("#stage-ladder .side pre").all_inner_texts()
        assert tab.locator("#stage-ladder .side img, #stage-ladder .side script").count() == 0
        assert tab.title().startswith("Toy-R1")
        assert all(url == page.as_uri() or url.startswith("data:") for url in asked)
        assert all(tab.locator("th button").all_text_contents())  # each has a name
        levels = tab.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
        assert all(after - before <= 1 for before, after in pairwise(levels))
        tab.locator("#stage-ladder").screenshot(path=tmp_path / f"stages-{width}.png")
        tab.close()
