"""What a report shows of policies: who beats whom, their replies side by side, and the page they stand on."""

import re
from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import toy_preferences as toy
from toy_run import HOSTILE

from analysis import analyse, report
from analysis.numbers import means, tasks
from analysis.numbers.table import final
from analysis.page import style
from analysis.preferences import alignment_tax, contenders, section, win_rates
from analysis.provenance import completions
from analysis.verdicts import published, summary
from recipes.spec.graph import Graph
from recipes.spec.recipe import Recipe

ONE = ("base-recipe",)


def test_a_policy_that_arms_share_is_one_contender(found):
    names = [who.name for who in found.among]
    assert names == ["base", "sft", "base-recipe", "kl-none", "kl-strong", "few-labels", "dpo"]
    assert [who.name for who in found.among if who.shared] == ["base", "sft"]
    assert found.start.name == "sft"
    assert found.task == "heldout"


def test_a_recipe_without_gold_has_none_of_it(run, table):
    plain = table[~table.metric.str.contains("gold|proxy") & table.step.isna()]
    assert contenders.judged_task(run, plain) == ""
    assert tasks.measure(plain, "heldout") == "accuracy"
    frames = section.gather(run, plain).frames
    assert set(frames) == {"reward_models", "labels"}
    assert section.gather(run, plain[plain.node != "reward_model"].assign(node="x")).frames == {}


def test_the_matrix_is_by_gold_of_the_samples_on_disk(run, found):
    row = found.frames["win_rates"].set_index(["of", "against"]).loc[("kl-strong", "sft")]
    wins = []
    for seed in run.seeds:
        sides = [
            toy.rows_of(run, arm, name, seed)
            for arm, name in (("kl-strong", "after"), ("base-recipe", "sft"))
        ]
        for one, other in zip(*sides, strict=True):
            wins += [(x > y) + 0.5 * (x == y) for x in one["gold"] for y in other["gold"]]
    assert row.win_rate == pytest.approx(np.mean(wins))
    own = [toy.rows_of(run, "dpo", "after", seed) for seed in run.seeds]
    beaten = [
        (x > line["reference_gold"]) + 0.5 * (x == line["reference_gold"])
        for rows in own
        for line in rows
        for x in line["gold"]
    ]
    rival = found.frames["win_rates"].set_index(["of", "against"]).loc[("dpo", section.RIVAL)]
    assert rival.win_rate == pytest.approx(np.mean(beaten))


def test_the_matrix_is_drawn_with_every_number(found):
    with mpl.rc_context(style.STYLE):
        figure = win_rates.draw(found.frames["win_rates"])
    (axis,) = figure.axes
    numbers = [text.get_text() for text in axis.texts]
    assert len(numbers) == 8 * 8
    assert [label.get_text() for label in axis.get_yticklabels()][:2] == ["base  1", "sft  2"]


def test_policies_stand_side_by_side_on_the_same_prompts(run, found):
    pairs = completions.side_by_side(run, found.task, found.among)
    assert [pair["difficulty"] for pair in pairs] == [1, 2, 3, 4, 5]
    shown = [side["checkpoint"] for side in pairs[0]["sides"]]
    assert shown == ["base", "sft", "base-recipe", "kl-none", "kl-strong", "dpo"]  # one of each kind first
    assert pairs[0]["sides"][0]["completion"] == HOSTILE
    first = toy.rows_of(run, "dpo", "after")[1]
    side = pairs[1]["sides"][-1]
    assert side["completion"] == first["completions"][0]
    assert side["scores"].startswith(f"gold {first['gold'][0]:.2f}".replace("-", "\N{MINUS SIGN}"))


def test_the_summary_speaks_of_gold(run, table):
    lines = summary.lines(run, final(table), [])
    assert len(lines) == 5
    assert lines[1].startswith("Gold reward on heldout, base-recipe, base")
    assert "win rate: 0.2" in lines[1]


def test_of_many_policies_one_of_each_kind_is_shown_first(found):
    names = [who.name for who in contenders.representatives(found.among, 4)]
    assert names == ["base", "sft", "base-recipe", "dpo"]
    assert contenders.representatives(found.among, 99) == list(found.among)


def test_a_checkpoint_that_all_arms_share_is_no_arms_end(run, table):
    spec = run.spec | {"evals": run.spec["evals"] | {"checkpoints": {"after": "ppo", "sft": "sft"}}}
    turned = replace(
        run, graph=Graph({**run.graph.recipes, run.name: Recipe(run.name, spec)}), arms=toy.ARMS[:4]
    )
    among = contenders.contenders(turned, final(table), "heldout")
    assert [who.name for who in among] == ["base-recipe", "sft", "kl-none", "kl-strong", "few-labels"]


def test_win_rates_by_task_need_two_tasks(found):
    numbers = pd.DataFrame(
        [
            {"arm": who.arm, "node": who.checkpoint, "step": np.nan, "metric": f"{task}/win_rate", "seed": 0,
             "value": 0.1 * place, "low": np.nan, "high": np.nan, "source": who.name}
            for place, who in enumerate(found.among)
            for task in ("heldout", "greedy")
        ]
    )  # fmt: skip
    both = alignment_tax.by_task(numbers, "heldout", ["heldout", "greedy"], found.among)
    shown = alignment_tax.by_task_shown(both).set_index("")
    assert shown.loc["dpo"].tolist() == ["0.600", "0.600"]
    assert not len(alignment_tax.by_task(numbers, "heldout", ["heldout", "tax-sort"], found.among))


def test_a_table_that_no_longer_has_data_goes(tmp_path, found):
    section.write(tmp_path, "here", {"labels": found.frames["labels"]})
    assert [kind.name for kind, _, _ in section.read(tmp_path)] == ["labels"]
    section.write(tmp_path, "here", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_page_opens_offline_and_untrusted_text_stays_text(run, tmp_path, browser):
    """The whole page, with every figure, in a browser at two widths."""
    out = tmp_path / "report"
    analyse.analyse(run, out)
    page = out.with_suffix(".html")
    page.write_text(report.render(run, out), encoding="utf-8")
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


def test_a_quickstart_of_one_arm_has_its_policies(run, table):
    one = replace(run, arms=("base-recipe",))
    few = contenders.contenders(one, final(table), "heldout")
    assert [(who.name, who.shared) for who in few] == [("base", True), ("sft", True), ("after", False)]
    spec = run.spec | {"evals": {key: value for key, value in run.spec["evals"].items() if key != "models"}}
    unnamed = replace(run, graph=Graph({**run.graph.recipes, run.name: Recipe(run.name, spec)}))
    assert contenders.baseline(unnamed, few).name == "sft"
    assert contenders.baseline(unnamed, []) is None


def test_published_preferences_have_ours_beside_them(run, table, found):
    entry = {"value": 71, "unit": "%", "source": "Table 1", "of": "kl-none/after", "against": "kl-none/sft"}
    entries = [
        {"what": "of two policies", **entry, "metric": "win_rate"},
        {"what": "at equal length", **entry, "metric": "length_controlled"},
        {"what": "of an arm that was not run", **entry, "of": "other/after", "metric": "win_rate"},
    ]
    recipe = Recipe(run.name, run.spec | {"published": entries})
    there = replace(run, graph=Graph({**run.graph.recipes, run.name: recipe}))
    shown = published.table_of(there, final(table), found.frames)
    rates = found.frames["win_rates"].set_index(["of", "against"]).loc[("kl-none", "sft")]
    fair = found.frames["length_controlled"].set_index("of").loc["kl-none"]
    assert shown.ours[0] == f"{100 * rates.win_rate:.1f} % [{100 * rates.low:.1f}, {100 * rates.high:.1f}]"
    assert shown.ours[1].startswith(f"{100 * fair['gold/controlled']:.1f} %")
    assert shown.ours[2] == means.DASH
    assert list(shown["our metric"]) == [
        "win rate of kl-none/after against kl-none/sft",
        "length-controlled win rate of kl-none/after against kl-none/sft",
        "no win rate of other/after against kl-none/sft",
    ]
    without = published.table_of(there, final(table), {})
    assert list(without.ours) == [means.DASH] * 3
