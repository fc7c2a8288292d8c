"""The section as a whole: its tables and its page."""

import re
from itertools import pairwise

import pytest
from toy_run import HOSTILE

from analysis import report
from analysis.numbers import tasks
from analysis.preferences import contenders
from analysis.preferences.build import build


def test_a_recipe_without_gold_has_none_of_it(run, table):
    plain = table[~table.metric.str.contains("gold|proxy") & table.step.isna()]
    assert contenders.judged_task(run, plain) == ""
    assert tasks.measure(plain, "heldout") == "accuracy"
    assert set(build(run, plain).tables) == {"reward_models", "labels"}
    assert build(run, plain[plain.node != "reward_model"].assign(node="x")).tables == {}


@pytest.mark.slow
def test_the_page_opens_offline_and_untrusted_text_stays_text(run, tmp_path, browser):
    """The whole page, with every figure, in a browser at two widths."""
    out = tmp_path / "report"
    page = out.with_suffix(".html")
    report.command(run, page, "report")
    text = page.read_text()
    assert HOSTILE not in text
    assert "<img src=x" not in text
    assert not re.search(r"""<[^<>]*\b(src|srcset|poster|action)=["']?(?!data:)\w""", text)
    for wanted in ("Over-optimisation by RL", "Win rates at equal length", "tax-sort, less that of sft",
                   "Side by side", "6 of 7 policies", "reference reply", "annotator, agreement 0.75",
                   "per completion"):  # fmt: skip
        assert wanted in text, wanted
    for width in (360, 1200):
        tab = browser.new_page(viewport={"width": width, "height": 800})
        asked: list[str] = []
        tab.on("request", lambda request, asked=asked: asked.append(request.url))
        tab.goto(page.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        assert tab.evaluate("[...document.images].every(i => i.naturalWidth > 0 && i.alt)")
        assert tab.locator("#preferences figure").count() == 6
        assert tab.title().startswith("Toy-RLHF")
        assert HOSTILE in tab.locator("#completions .side pre").all_inner_texts()
        assert all(url == page.as_uri() or url.startswith("data:") for url in asked)
        levels = tab.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
        assert all(after - before <= 1 for before, after in pairwise(levels))
        tab.close()
