"""What a report of preference learning shows, on a synthetic run whose laws are known."""

import math
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import toy_preferences as toy
from toy_run import HOSTILE, load_all

from analysis import (
    analyse,
    configuration,
    contenders,
    drawing,
    frontier,
    objectives,
    over_optimization,
    preference_tables,
    preferences,
    report,
    reward_fits,
    reward_models,
    samples,
    summary,
    tables,
    win_rates,
)
from analysis.table import Run, collect, final
from recipes import graph
from recipes.recipe import Recipe

ONE = ("base-recipe",)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    root = tmp_path_factory.mktemp("preferences")
    shutil.copytree(Path(__file__).parent / "recipes", root / "recipes")
    return toy.make(root, Run(load_all(root), "toy_rlhf", "cpu", toy.ARMS, (0, 1), root))


@pytest.fixture(scope="module")
def table(run) -> pd.DataFrame:
    return collect(run)


@pytest.fixture(scope="module")
def found(run, table) -> preferences.Found:
    return preferences.gather(run, table)


@pytest.fixture(scope="module")
def palette(run) -> dict[str, str]:
    return drawing.colours(run.recipe.arms("cpu"))


def rows_of(run: Run, arm: str, checkpoint: str, seed: int = 0) -> list[dict]:
    node = graph.owner(run.recipes, graph.Node(run.name, run.scale, arm, seed, checkpoint, "eval"))
    return list(contenders.read_lines(run.folder(node) / f"{checkpoint}.samples.jsonl"))


def test_a_policy_that_arms_share_is_one_contender(found):
    names = [who.name for who in found.among]
    assert names == ["base", "sft", "base-recipe", "kl-none", "kl-strong", "few-labels", "dpo"]
    assert [who.name for who in found.among if who.shared] == ["base", "sft"]
    assert found.start.name == "sft"
    assert found.task == "heldout"


def test_a_recipe_without_gold_has_none_of_it(run, table):
    plain = table[~table.metric.str.contains("gold|proxy") & table.step.isna()]
    assert contenders.judged_task(run, plain) == ""
    assert tables.measure(plain, "heldout") == "accuracy"
    frames = preferences.gather(run, plain).frames
    assert set(frames) == {"reward_models", "labels"}
    assert preferences.gather(run, plain[plain.node != "reward_model"].assign(node="x")).frames == {}


def test_the_matrix_is_by_gold_of_the_samples_on_disk(run, found):
    row = found.frames["win_rates"].set_index(["of", "against"]).loc[("kl-strong", "sft")]
    wins = []
    for seed in run.seeds:
        sides = [
            rows_of(run, arm, name, seed) for arm, name in (("kl-strong", "after"), ("base-recipe", "sft"))
        ]
        for one, other in zip(*sides, strict=True):
            wins += [(x > y) + 0.5 * (x == y) for x in one["gold"] for y in other["gold"]]
    assert row.win_rate == pytest.approx(np.mean(wins))
    own = [rows_of(run, "dpo", "after", seed) for seed in run.seeds]
    beaten = [
        (x > line["reference_gold"]) + 0.5 * (x == line["reference_gold"])
        for rows in own
        for line in rows
        for x in line["gold"]
    ]
    rival = found.frames["win_rates"].set_index(["of", "against"]).loc[("dpo", preferences.RIVAL)]
    assert rival.win_rate == pytest.approx(np.mean(beaten))


def test_the_laws_of_training_and_of_best_of_n_are_recovered(found):
    fits = found.frames["over_optimization"].set_index(["by", "arm", "reward", "form"]).sort_index()
    for arm in ("base-recipe", "kl-none", "few-labels"):
        row = fits.loc[("RL", arm, "gold", "rl")]
        alpha, beta = toy.ALPHA.get(arm, toy.ALPHA_ELSE), toy.BETA.get(arm, toy.BETA_ELSE)
        assert (row.alpha, row.beta) == pytest.approx((alpha, beta), abs=0.08)
        assert row.alpha_low <= row.alpha <= row.alpha_high
        assert row.highest_at_kl == pytest.approx(math.exp(2 * (alpha / beta - 1)), rel=0.15)
    far = fits.loc[("RL", "kl-none", "gold")].r2_held_out
    assert far["rl"] > 0.95 > max(far["bon"], far["linear"], far["cubic"])
    assert fits.loc[("RL", "kl-none", "proxy", "linear")].alpha == pytest.approx(toy.PROXY, abs=0.03)
    drawn = fits.loc[("best-of-n", "base-recipe", "gold", "bon")]
    assert (drawn.alpha, drawn.beta) == pytest.approx(toy.BON)
    assert drawn.largest_kl == pytest.approx(reward_fits.best_of_n_kl(8))
    shown = over_optimization.table_shown(found.frames["over_optimization"])
    assert len(shown) == 2 * (4 + 2)  # rewards; four arms with ppo, the initial policy by two proxies


def test_arms_that_share_a_run_have_one_track(run, table):
    again = table[table.arm == "kl-none"].assign(arm="base-recipe")
    shared = pd.concat([table[table.arm == "kl-none"], again])
    tracks = over_optimization.of_training(run, shared)
    assert [(track.arm, track.reward) for track in tracks] == [
        ("base-recipe", "gold"),
        ("base-recipe", "proxy"),
    ]


def test_sweeps_are_of_arms_that_differ_in_one_number(run):
    assert configuration.sweeps(run) == {
        "ppo.args.kl_coef": ["kl-none", "base-recipe", "kl-strong"],
        "sample.problems": ["few-labels", "base-recipe"],
    }
    assert frontier.short("ppo.args.kl_coef") == "ppo kl_coef"


def test_the_frontier_stands_where_the_evaluations_say(run, table, found, palette):
    by_name = {place.who.name: place for place in found.places}
    numbers = final(table)
    for arm in ("kl-none", "dpo"):
        here = numbers[(numbers.arm == arm) & (numbers.node == "after")].groupby("metric").value.mean()
        assert by_name[arm].kl.value == pytest.approx(here["heldout/kl"])
        assert by_name[arm].rewards["gold"].value == pytest.approx(here["heldout/gold"])
    with mpl.rc_context(drawing.STYLE):
        figure = frontier.draw(found.places, configuration.sweeps(run), palette)
    gold, proxy = figure.axes
    lines = [
        line.get_xdata() for line in gold.lines if line.get_linestyle() != "-" and len(line.get_xdata()) > 1
    ]
    swept = [by_name[arm].kl.value for arm in ("kl-none", "base-recipe", "kl-strong")]
    assert any(np.array_equal(x, swept) for x in lines)
    assert {text.get_text() for text in gold.texts} == {"base", "sft"}
    assert (gold.get_ylabel(), proxy.get_ylabel()) == ("gold reward", "proxy reward")
    assert frontier.draw(found.places[:2], {}, palette) is None


def test_over_optimisation_is_drawn_as_gain(found, palette):
    with mpl.rc_context(drawing.STYLE):
        figure = over_optimization.draw(found.trained, palette)
        assert over_optimization.draw([], palette) is None
    gold, proxy = figure.axes
    track = next(track for track in found.trained if (track.arm, track.reward) == ("few-labels", "gold"))
    assert any(np.array_equal(line.get_ydata(), track.gain) for line in gold.lines)
    assert abs(track.gain[0]) < 0.2 < track.gain.max()
    assert track.gain[-1] < 0 < min(line.get_ydata()[-1] for line in proxy.lines if len(line.get_ydata()) > 2)


def test_calibration_is_pooled_by_counts(run, palette):
    assert reward_models.stages(run) == {
        "base-recipe": ("base-recipe", "reward_model"),
        "few-labels": ("few-labels", "reward_model"),
    }
    bins = reward_models.calibration(run, "base-recipe", "reward_model")
    parts = [
        pd.read_csv(run.folder(node) / "calibration.csv")
        for seed in run.seeds
        for node in run.nodes("base-recipe", seed)
        if node.name == "reward_model"
    ]
    assert bins["count"].tolist() == (parts[0]["count"] + parts[1]["count"]).tolist()
    weighted = sum(part.observed * part["count"] for part in parts) / sum(part["count"] for part in parts)
    assert bins.observed.tolist() == pytest.approx(weighted.tolist())
    with mpl.rc_context(drawing.STYLE):
        figure = reward_models.draw_calibration(run, palette)
    assert [axis.get_title("left") for axis in figure.axes] == ["base-recipe", "few-labels"]
    assert reward_models.draw_calibration(replace(run, root=run.root / "none"), palette) is None


def test_tables_of_reward_models_labels_and_tax(run, table, found):
    models = reward_models.table_shown(found.frames["reward_models"]).set_index("")
    assert models.loc["accuracy, held out", "base-recipe"].startswith("0.7")
    assert list(models.columns) == ["base-recipe", "few-labels"]
    labels = preference_tables.labels_shown(found.frames["labels"])
    assert labels["labelled by"].tolist() == ["annotator, agreement 0.75"] * 2
    assert labels["skipped/equal"].tolist() == ["31"] * 2
    assert "skipped/empty" not in labels  # nothing was
    tax = found.frames["alignment_tax"].set_index(["policy", "task"])
    numbers = final(table)

    def accuracy(arm, node):
        here = numbers[(numbers.arm == arm) & (numbers.node == node)]
        return here[here.metric == "tax-sort/accuracy"].sort_values("seed").value.to_numpy()

    change = accuracy("kl-none", "after") - accuracy("base-recipe", "sft")
    assert tax.loc[("kl-none", "tax-sort"), "change"] == pytest.approx(change.mean())
    assert math.isnan(tax.loc[("sft", "tax-sort"), "change"])
    assert "tax-sort, less that of sft" in preference_tables.tax_shown(tax.reset_index())


def test_the_matrix_is_drawn_with_every_number(found):
    with mpl.rc_context(drawing.STYLE):
        figure = win_rates.draw(found.frames["win_rates"])
    (axis,) = figure.axes
    numbers = [text.get_text() for text in axis.texts]
    assert len(numbers) == 8 * 8
    assert [label.get_text() for label in axis.get_yticklabels()][:2] == ["base  1", "sft  2"]


def test_policies_stand_side_by_side_on_the_same_prompts(run, found):
    pairs = samples.side_by_side(run, found.task, found.among)
    assert [pair["difficulty"] for pair in pairs] == [1, 2, 3, 4, 5]
    shown = [side["checkpoint"] for side in pairs[0]["sides"]]
    assert shown == ["base", "sft", "base-recipe", "kl-none", "kl-strong", "dpo"]  # one of each kind first
    assert pairs[0]["sides"][0]["completion"] == HOSTILE
    first = rows_of(run, "dpo", "after")[1]
    side = pairs[1]["sides"][-1]
    assert side["completion"] == first["completions"][0]
    assert side["scores"].startswith(f"gold {first['gold'][0]:.2f}".replace("-", "\N{MINUS SIGN}"))


def test_the_summary_speaks_of_gold(run, table):
    lines = summary.lines(run, final(table), [])
    assert len(lines) == 5
    assert lines[1].startswith("Gold reward on heldout, base-recipe, base")
    assert "win rate: 0.2" in lines[1]


def test_proxies_are_compared_each_with_itself(run, found):
    start = found.start
    few = next(who for who in found.among if who.name == "few-labels")
    assert contenders.proxies(run, found.among) == 2
    assert contenders.in_arm(run, start, "few-labels").at == "few-labels/sft"
    assert contenders.in_arm(run, few, "dpo") == few  # not evaluated there
    row = found.frames["length_controlled"].set_index("of").loc["few-labels"]
    own, other = ([rows_of(run, "few-labels", name, seed) for seed in run.seeds] for name in ("after", "sft"))
    wins = [
        (x > y) + 0.5 * (x == y)
        for mine, theirs in zip(own, other, strict=True)
        for a, b in zip(mine, theirs, strict=True)
        for x in a["proxy"]
        for y in b["proxy"]
    ]
    assert row["proxy/win_rate"] == pytest.approx(np.mean(wins))


def test_of_many_policies_one_of_each_kind_is_shown_first(found):
    names = [who.name for who in contenders.representatives(found.among, 4)]
    assert names == ["base", "sft", "base-recipe", "dpo"]
    assert contenders.representatives(found.among, 99) == list(found.among)


def test_a_policy_of_another_size_is_measured_from_its_own_start(run, table, found):
    needs = {"sft": {"needs": {"policy": "tiny_lm/pretrain@no-cot"}}}
    arms = run.spec["arms"] | {"large": {"stages": needs}}
    large = replace(
        run,
        recipes={**run.recipes, run.name: Recipe(run.name, run.spec | {"arms": arms})},
        arms=(*ONE, "large"),
    )
    rows = final(table)
    other = rows[(rows.arm == "kl-none")].assign(arm="large", source=rows.source + "-large")
    both = pd.concat([rows[rows.arm == "base-recipe"], other])
    among = contenders.contenders(large, both, "heldout")
    assert [(who.name, who.shared) for who in among] == [
        ("base-recipe/base", False), ("base-recipe/sft", False), ("base-recipe", False),
        ("large/base", False), ("large/sft", False), ("large", False),
    ]  # fmt: skip
    assert contenders.own_start(large, among[-1], among[1]).at == "large/sft"
    tax = preference_tables.tax(large, both, "heldout", among, among[1]).set_index(["policy", "task"])
    assert math.isnan(tax.loc[("large/sft", "tax-sort"), "change"])
    assert tax.loc[("large", "tax-sort"), "change"] == pytest.approx(
        found.frames["alignment_tax"].set_index(["policy", "task"]).loc[("kl-none", "tax-sort"), "change"]
    )


def test_a_checkpoint_that_all_arms_share_is_no_arms_end(run, table):
    spec = run.spec | {"evals": run.spec["evals"] | {"checkpoints": {"after": "ppo", "sft": "sft"}}}
    turned = replace(run, recipes={**run.recipes, run.name: Recipe(run.name, spec)}, arms=toy.ARMS[:4])
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
    both = preference_tables.by_task(numbers, "heldout", ["heldout", "greedy"], found.among)
    shown = preference_tables.by_task_shown(both).set_index("")
    assert shown.loc["dpo"].tolist() == ["0.600", "0.600"]
    assert not len(preference_tables.by_task(numbers, "heldout", ["heldout", "tax-sort"], found.among))


def test_objectives_of_ppo_and_dpo_are_told(run):
    rows = objectives.optimised(run).set_index("arm")
    assert rows.loc["kl-strong", "KL"] == "0.4 k1 in the reward"
    assert rows.loc["kl-none", "KL"] == "none"
    assert rows.loc["base-recipe", "also"] == (
        "rewarded by reward model; critic from reward model, loss x 0.1, clipped at 0.2"
    )
    assert rows.loc["dpo", "objective"] == "dpo, sigmoid"
    assert rows.loc["dpo", "KL"] == "beta 0.1"
    assert objectives.clip_range(run, "base-recipe") == (0.8, 1.2)
    assert objectives.clip_range(run, "dpo") is None


def test_a_table_that_no_longer_has_data_goes(tmp_path, found):
    preferences.write(tmp_path, "here", {"labels": found.frames["labels"]})
    assert [kind.name for kind, _, _ in preferences.read(tmp_path)] == ["labels"]
    preferences.write(tmp_path, "here", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_page_opens_offline_and_untrusted_text_stays_text(run, tmp_path):
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
    playwright = pytest.importorskip("playwright.sync_api")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with playwright.sync_playwright() as engine:
        try:
            chromium = engine.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no Chromium: {error}")
        for width in (360, 1200):
            tab = chromium.new_page(viewport={"width": width, "height": 800})
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
        chromium.close()


def test_a_quickstart_of_one_arm_has_its_policies(run, table):
    one = replace(run, arms=("base-recipe",))
    few = contenders.contenders(one, final(table), "heldout")
    assert [(who.name, who.shared) for who in few] == [("base", True), ("sft", True), ("after", False)]
    spec = run.spec | {"evals": {key: value for key, value in run.spec["evals"].items() if key != "models"}}
    unnamed = replace(run, recipes={**run.recipes, run.name: Recipe(run.name, spec)})
    assert contenders.baseline(unnamed, few).name == "sft"
    assert contenders.baseline(unnamed, []) is None
