"""The page as text, and in headless Chromium; screenshots go to pytest's temporary folder."""

import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from toy_run import ARMS, HOSTILE, draw_only

from analysis import report
from analysis.numbers.run import Run
from analysis.numbers.table import collect
from analysis.results import build
from encore.recipe.graph import Graph
from encore.recipe.layers import Layers
from encore.recipe.recipe import Recipe


@pytest.mark.slow
def test_a_page_is_written_without_torch_which_takes_seconds_to_import():
    code = "import sys, analysis.report; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_the_page_stands_alone(page):
    text = page.read_text()
    assert len(text) < 3_000_000
    text = re.sub(r'<script type="application/json".*?</script>', "", text)  # inert
    assert not re.search(r"""\b(src|srcset|poster|action|data)=["']?(?!data:)\w""", text)
    assert not re.search(r"@import|url\((?!data:|%23|#)", text)  # %23, #: a part of the drawing itself
    assert "<link" not in text.replace('<link rel="icon" href="data:,">', "")


@pytest.mark.slow
def test_what_a_model_wrote_never_becomes_markup(page):
    text = page.read_text()
    assert HOSTILE not in text
    assert "<img src=x" not in text
    assert text.count("</script>") == 6  # the rows, the tables, the curves twice, the viewer, the folds
    assert "\\u003c/script\\u003e\\u003cimg" in text


@pytest.mark.slow
def test_it_says_what_a_reader_asks_for(page):
    text = page.read_text()
    for wanted in (
        "0.190 [0.190, 0.190]",
        "19.0 % [19.0, 19.0]",
        "for this base model",
        "of 3 seeds, which holds the truth in about 75% of cases, not in 95%",
        "<b>0.5M-parameter model trained here from scratch</b> on <b>sums</b>, cpu scale, 3 seeds, 3 arms.",
        "elapsed while any of",
        "KL divergence to the reference policy",
        "Where the uncertainty of accuracy comes from",
        " open</b>",
        "arm random was not run",
        "they stand apart: compare which arm is higher, not the numbers",
        "0123456789abcdef0123456789abcdef01234567",
        "torch 2.13.0",
        "most groups teach nothing",
        "<i># Nature Methods: equal weight</i>",
        "The clip range is 0.2, not 10.",
        "snakemake --cores all results/toy_zero/cpu/report.html --config scale=cpu seeds=3",
        "grpo.rewards.accuracy",
        "tokens of each completion, then completions",
        "ladder: each arm adds to the one above. format-only 0.205 [",  # in words
        "tiny_lm/pretrain@no-cot",
        "best template",
    ):
        assert wanted in text, wanted


@pytest.mark.slow
def test_how_flops_are_counted_is_said_once_a_stage(page):
    text = page.read_text()
    assert text.count("grpo: parameters x tokens x 6") == 1
    assert text.count("tiny_lm/pretrain: parameters x tokens x 6") == 1


def test_a_run_without_artefacts_has_a_page(run, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(run.root / "recipes", root / "recipes")
    empty = Run(run.graph, run.name, run.scale, run.arms, run.seeds, root)
    report.write(build(empty, collect(empty)), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert (
        "Of 3 claims of the paper: <b>3 not tested</b>. Of 2 claims of other papers: <b>2 not tested</b>."
        in text
    )
    assert "No samples on disk." in text


def test_one_checkpoint_or_none_has_a_page(run, tmp_path, monkeypatch):
    draw_only(set(), monkeypatch)  # figures are drawn for other tests
    spec = run.recipe.layers.content | {
        "evals": run.recipe.layers.content["evals"] | {"checkpoints": {"after": "grpo"}}
    }
    recipes = {**run.graph.recipes, "toy_zero": Recipe("toy_zero", Layers(spec), run.recipe.files)}
    one = Run(Graph(recipes), "toy_zero", "cpu", ARMS[:1], (0,), run.root)
    lines = report.write(build(one, collect(one)), tmp_path / "one.html")
    assert lines[1].startswith("Accuracy on heldout, base-recipe, after: 0.7")
    assert "has an accuracy on" in (tmp_path / "one.html").read_text()
    none = Run(Graph(recipes), "tiny_lm", "cpu", ("base-recipe",), (0,), run.root)
    report.write(build(none, collect(none)), tmp_path / "none.html")
    assert "This recipe states no claims." in (tmp_path / "none.html").read_text()


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_fits_its_width(visit, tmp_path, width):
    tab = visit(width)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert tab.evaluate("(n => n.scrollWidth - n.clientWidth)(document.querySelector('nav'))") == 0
    assert tab.locator("#headline-accuracy").inner_text().startswith("0.190")
    assert tab.evaluate("[...document.images].every(i => i.naturalWidth > 0 && i.alt)")
    if width != 768:
        tab.screenshot(path=tmp_path / f"report-{width}.png", full_page=True)


def test_contents_lead_to_sections(visit):
    tab = visit(1200)
    for link in tab.locator("nav a").all():
        target = link.get_attribute("href")
        assert tab.locator(f"section{target} > h2").count() == 1
    levels = tab.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_viewer_filters_and_untrusted_text_stays_text(visit):
    tab = visit(1200)
    tab.select_option("[name=step]", "60")
    assert HOSTILE in tab.locator("#cards pre").all_inner_texts()
    assert tab.locator("#cards img, #cards script").count() == 0
    assert tab.title() == "Toy-Zero: reinforcement learning from a blank model · Encore"
    tab.select_option("[name=outcome]", "false")
    assert set(tab.locator("#cards .mark").all_inner_texts()) <= {"incorrect"}
    tab.select_option("[name=outcome]", "")
    tab.select_option("[name=step]", "")
    everything = tab.locator("#cards article").count()
    assert tab.locator("output[name=count]").inner_text() == f"{everything} shown"
    tab.select_option("[name=arm]", "no-cot-base")
    tab.select_option("[name=outcome]", "true")
    assert tab.locator("#cards article").count() < everything


def test_print_shows_all(visit, tmp_path):
    tab = visit(700)
    passed = tab.locator("#health details .wide")
    assert passed.is_hidden()  # folded; what failed is not
    assert tab.locator("#health .wide >> nth=0").is_visible()
    tab.emulate_media(media="print")
    assert passed.is_visible()
    assert tab.evaluate("document.documentElement.scrollWidth") <= 700
    assert tab.locator("nav").is_hidden()
    tab.pdf(path=tmp_path / "print.pdf", format="A4")
    assert (tmp_path / "print.pdf").stat().st_size > 10_000


CUT = """() => {
  const cut = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode, range = document.createRange();
    if (!text.parentElement.closest("td, th") || !text.parentElement.checkVisibility()) continue;
    for (const word of text.data.matchAll(/[\\p{L}\\p{N}]+(?:[.,]\\p{N}+)*/gu)) {
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) cut.push(word[0]);
    }
  }
  return cut;
}"""  # the words and numbers in tables that stand in two lines


def test_in_print_no_table_cuts_a_word_or_a_number(visit):
    tab = visit(688)  # A4 without its margins
    tab.emulate_media(media="print")
    assert max(tab.evaluate("[...document.querySelectorAll('tr')].map((row) => row.cells.length)")) >= 12
    assert tab.evaluate(CUT) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 688


def test_text_stands_out_from_its_ground_in_light_and_dark(visit):
    tab = visit(1200)
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)
        worst = tab.evaluate(CONTRAST)
        assert worst["ratio"] >= 4.5, f"{scheme}: {worst}"


def test_axe_has_no_serious_finding(visit):
    """Deque's axe-core, vendored by axe-playwright-python; in light and dark, on a desk and a phone."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for width, scheme in ((1200, "light"), (1200, "dark"), (390, "light")):
        tab = visit(width)
        tab.emulate_media(color_scheme=scheme)
        found = axe.run(tab).response["violations"]
        bad = [one for one in found if one["impact"] in ("serious", "critical")]
        assert not bad, [(one["id"], [node["target"] for node in one["nodes"]][:5]) for one in bad]


def test_a_table_sorts_by_a_click_or_a_key(visit):
    tab = visit(1200)
    header = tab.locator("#results th button").nth(1)
    cells = tab.locator("#results table").first.locator("tbody tr td:nth-child(2)")
    header.click()
    up = [float(text.split()[0]) for text in cells.all_inner_texts()]
    assert up == sorted(up)
    assert tab.locator("#results th[aria-sort=ascending]").count() == 1
    header.press("Enter")
    down = [float(text.split()[0]) for text in cells.all_inner_texts()]
    assert down == up[::-1]


def test_a_long_table_shows_the_rows_that_have_the_words(browser):
    rows = "".join(f"<tr><th>arm {n}</th><td>{n % 3}</td></tr>" for n in range(20))
    short = rows.partition("<tr><th>arm 5")[0]
    head = "<thead><tr><th>Arm</th><th>Level</th></tr></thead>"
    region = f'<div class="wide" aria-label="All arms"><table>{head}<tbody>{rows}</tbody></table></div>'
    script = Path(report.__file__).with_name("page").joinpath("templates/tables.js").read_text()
    tab = browser.new_page()
    tab.set_content(f"<main>{region}{region.replace(rows, short)}</main>")
    tab.add_script_tag(content=script)
    form = tab.get_by_role("form", name="Filter: All arms")
    assert form.count() == 1  # the short table has none
    shown = tab.locator(".wide").first.locator("tbody tr").filter(visible=True)
    form.get_by_label("Words").fill("7 ARM 2")
    assert shown.all_inner_texts() == ["arm 17\t2"]
    assert form.locator("output").inner_text() == "1 of 20"
    tab.locator("th button").first.click()
    form.get_by_label("Words").fill("")
    assert shown.count() == 20
    tab.close()


CONTRAST = """() => {
  const rgba = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgba(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  let worst = { ratio: 99 };
  for (const node of document.querySelectorAll("body *")) {
    if (![...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !node.offsetParent) continue;
    const pair = [light(rgba(getComputedStyle(node).color)), light(ground(node))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, text: node.textContent.trim().slice(0, 40), tag: node.tagName };
  }
  return worst;
}"""
