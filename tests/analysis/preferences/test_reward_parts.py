"""What a report shows of rewards: against divergence, of reward models and labels, and each arm's loss."""

import math
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import toy_preferences as toy

from analysis.numbers.table import final
from analysis.page import style
from analysis.preferences import (
    alignment_tax,
    contenders,
    frontier,
    over_optimization,
    reward_fits,
    reward_models,
    sweeps,
)
from analysis.preferences import labels as labels_module
from analysis.preferences.over_optimization import Track
from analysis.training import objectives
from recipes.spec.graph import Graph
from recipes.spec.recipe import Recipe


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


def test_of_two_trainings_the_one_from_the_initial_policy_is_shown(run, table):
    again = {
        "ppo_2": {**run.spec["stages"]["ppo"], "needs": {"policy": "ppo", "reward_model": "reward_model"}}
    }
    twice = Recipe(run.name, run.spec | {"stages": run.spec["stages"] | again})
    later = table[table.node == "ppo"].assign(node="ppo_2", value=-1.0)
    one_arm = replace(run, arms=("base-recipe",))
    both = replace(one_arm, graph=Graph({**run.graph.recipes, run.name: twice}))
    shown = over_optimization.of_training(both, pd.concat([table, later]))
    for one, plain in zip(shown, over_optimization.of_training(one_arm, table), strict=True):
        assert np.array_equal(one.gain, plain.gain)


@pytest.mark.parametrize(
    ("gain", "highest"),
    [
        (lambda d: d * (-0.2 - 0.1 * d), "0"),
        (lambda d: d * (1.2 - 0.3 * d), "4"),
        (lambda d: d * (1.2 - 0.1 * d), "beyond 16"),
        (lambda d: d * (0.2 + 0.1 * d), "rises on"),
    ],
)
def test_where_a_reward_is_highest(gain, highest):
    d = np.linspace(0.5, 4, 20)
    none = np.full(len(d), np.nan)
    seeds = tuple((d, gain(d) + shift * d) for shift in (-0.01, 0.01))
    frame = over_optimization.table_of([Track("a", "best-of-n", "gold", d, gain(d), none, none, seeds)])
    assert over_optimization.table_shown(frame)["highest at KL"].tolist() == [highest]


def test_sweeps_are_of_arms_that_differ_in_one_number(run):
    assert sweeps.sweeps(run) == {
        "ppo.args.kl_coef": ["kl-none", "base-recipe", "kl-strong"],
        "sample.problems": ["few-labels", "base-recipe"],
    }
    assert frontier.short("ppo.args.kl_coef") == "ppo kl_coef"
    arms = run.spec["arms"]
    other = arms | {"few-labels": arms["few-labels"] | {"evals": {"tasks": {"heldout": {"samples": 3}}}}}
    elsewhere = {**run.graph.recipes, run.name: Recipe(run.name, run.spec | {"arms": other})}
    assert sweeps.sweeps(replace(run, graph=Graph(elsewhere))) == sweeps.sweeps(run)


def test_the_frontier_stands_where_the_evaluations_say(run, table, found, palette):
    by_name = {place.who.name: place for place in found.places}
    numbers = final(table)
    for arm in ("kl-none", "dpo"):
        here = numbers[(numbers.arm == arm) & (numbers.node == "after")].groupby("metric").value.mean()
        assert by_name[arm].kl.value == pytest.approx(here["heldout/kl"])
        assert by_name[arm].rewards["gold"].value == pytest.approx(here["heldout/gold"])
    with mpl.rc_context(style.STYLE):
        figure = frontier.draw(found.places, sweeps.sweeps(run), palette)
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
    with mpl.rc_context(style.STYLE):
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
    with mpl.rc_context(style.STYLE):
        figure = reward_models.draw_calibration(run, palette)
    assert [axis.get_title("left") for axis in figure.axes] == ["base-recipe", "few-labels"]
    assert reward_models.draw_calibration(replace(run, root=run.root / "none"), palette) is None


def test_tables_of_reward_models_labels_and_tax(run, table, found):
    models = reward_models.table_shown(found.frames["reward_models"]).set_index("")
    assert models.loc["accuracy, held out", "base-recipe"].startswith("0.7")
    assert list(models.columns) == ["base-recipe", "few-labels"]
    labels = labels_module.labels_shown(found.frames["labels"])
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
    assert "tax-sort, less that of sft" in alignment_tax.tax_shown(tax.reset_index())


def test_proxies_are_compared_each_with_itself(run, found):
    start = found.start
    few = next(who for who in found.among if who.name == "few-labels")
    assert contenders.proxies(run, found.among) == 2
    assert contenders.in_arm(run, start, "few-labels").at == "few-labels/sft"
    assert contenders.in_arm(run, few, "dpo") == few  # not evaluated there
    row = found.frames["length_controlled"].set_index("of").loc["few-labels"]
    own, other = (
        [toy.rows_of(run, "few-labels", name, seed) for seed in run.seeds] for name in ("after", "sft")
    )
    wins = [
        (x > y) + 0.5 * (x == y)
        for mine, theirs in zip(own, other, strict=True)
        for a, b in zip(mine, theirs, strict=True)
        for x in a["proxy"]
        for y in b["proxy"]
    ]
    assert row["proxy/win_rate"] == pytest.approx(np.mean(wins))


def test_a_policy_of_another_size_is_measured_from_its_own_start(run, table, found):
    needs = {"sft": {"needs": {"policy": "tiny_lm/pretrain@no-cot"}}}
    arms = run.spec["arms"] | {"large": {"stages": needs}}
    large = replace(
        run,
        graph=Graph({**run.graph.recipes, run.name: Recipe(run.name, run.spec | {"arms": arms})}),
        arms=("base-recipe", "large"),
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
    tax = alignment_tax.tax(large, both, "heldout", among, among[1]).set_index(["policy", "task"])
    assert math.isnan(tax.loc[("large/sft", "tax-sort"), "change"])
    assert tax.loc[("large", "tax-sort"), "change"] == pytest.approx(
        found.frames["alignment_tax"].set_index(["policy", "task"]).loc[("kl-none", "tax-sort"), "change"]
    )


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
