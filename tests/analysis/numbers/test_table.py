import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from papers import GRAPH

from analysis.numbers import means
from analysis.numbers.run import Run, read_json, read_lines
from analysis.numbers.table import COLUMNS, collect, health, measured, provenance
from analysis.page import tables
from analysis.provenance import cost
from analysis.provenance import health as checks_table
from analysis.results import arms as results_arms
from analysis.verdicts import claims, claims_table, published, summary
from recipes.errors import UserError
from recipes.spec.graph import Graph
from recipes.spec.recipe import Recipe


@pytest.fixture(scope="module")
def table(run):
    return collect(run)


def test_every_number_is_a_row_of_the_contract(table, run):
    assert list(table.columns) == COLUMNS
    assert set(table.arm) == set(run.arms)
    assert set(table.node) == {"tiny_lm/pretrain", "grpo", "before", "after"}
    assert not table.duplicated(["arm", "seed", "node", "step", "metric"]).any()


def test_a_shared_checkpoint_appears_for_each_arm_that_uses_it(table):
    rows = [measured(table, f"{arm}/before", "heldout/accuracy") for arm in ("base-recipe", "random")]
    assert len(rows[0]) == 3
    assert rows[0].equals(rows[1])
    assert set(rows[1].source) == {"results/toy_zero/cpu/base-recipe/seed0/evals/before.json"}
    own = measured(table, "no-cot-base/before", "heldout/accuracy")
    assert set(own.source) == {"results/toy_zero/cpu/no-cot-base/seed0/evals/before.json"}


def test_curves_have_steps_and_final_numbers_have_none(table):
    rewards = table[(table.metric == "reward") & (table.arm == "random") & (table.seed == 1)]
    assert sorted(rewards.step) == list(range(1, 61))
    assert measured(table, "random/after", "heldout/accuracy").value.notna().all()


def test_undefined_numbers_stay_undefined(table):
    length = measured(table, "no-cot-base/before", "heldout/length_correct")
    assert length.value.isna().all()
    assert means.average(length).n == 0


def test_what_is_not_on_disk_has_no_rows(run, tmp_path):
    empty = Run(run.graph, run.name, run.scale, run.arms, run.seeds, tmp_path)
    assert len(collect(empty)) == 0
    assert len(health(empty)) == len(provenance(empty)) == 0
    assert cost.cost(provenance(empty)).iloc[-1].wall_s == 0


def test_nothing_shared_is_counted_twice(run):
    spent = cost.cost(provenance(run))
    assert spent.runs.iloc[-1] == 2 + 6 * 3  # two base models, six arms by three seeds
    assert spent.runs.iloc[:-1].sum() == spent.runs.iloc[-1]


def test_of_two_stages_of_one_name_an_arm_has_its_own():
    run = Run(GRAPH, "instructgpt", "cpu", ("base-recipe", "rm-shuffled", "large"), (0,))
    stages = {arm: [n for n in run.nodes(arm, 0) if n.kind == "stage"] for arm in run.arms}
    # evaluated with the base arm's reward model, and with one of its own
    assert [n.arm for n in stages["rm-shuffled"] if n.name == "reward_model"] == ["rm-shuffled"]
    # with none of its own, in whose chain is another's sft
    assert {(n.name, n.arm) for n in stages["large"] if n.name in ("reward_model", "sft")} == {
        ("reward_model", "base-recipe"),
        ("sft", "large"),
    }
    for nodes in stages.values():
        labels = [node.name for node in nodes if node.recipe == run.name]
        assert len(labels) == len(set(labels))


def test_a_broken_artefact_is_one_clear_line(tmp_path):
    path = tmp_path / "after.json"
    path.write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        read_json(path)
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b'{"a": 1}\n{"a": "\xff"}\n{"a": ')
    assert [row["a"] for row in read_lines(rows)] == [1, "\ufffd"]


def test_the_base_is_shown_once_with_its_best_template(run, table):
    arms = results_arms.arms(run, table)
    base = arms[(arms.arm == "base-recipe") & (arms.checkpoint == "before")]
    assert dict(zip(base.task, base.best_template, strict=True)) == {"heldout": True, "heldout-plain": False}
    assert not len(arms[(arms.arm == "random") & (arms.checkpoint == "before")])
    assert set(arms[arms.checkpoint == "after"].over) == {"seeds"}
    assert set(base.over) == {"items"}


def test_published_numbers_say_that_the_scale_differs(run, table):
    beside = published.table_of(run, table, {})
    assert set(beside.comparison) == {published.OTHER_SCALE}


def test_published_numbers_and_ours_have_one_unit(run, table):
    at = {"source": "Table 2", "metric": "heldout/accuracy", "at": "base-recipe/before"}
    entries = [
        {"what": "in percent", "value": 15.6, "unit": "%", **at},
        {"what": "as a fraction", "value": 0.156, **at},
        {"what": "another task", "value": 71, "unit": "%", **at, "metric": "aime24/accuracy"},
        {"what": "another checkpoint", "value": 71, **at, "at": "base-recipe/middle"},
        {"what": "another arm", "value": 71, **at, "at": "none/after"},
        {"what": "another metric", "value": 71, **at, "metric": "heldout/pass@99"},
        {"what": "nothing", "value": 71, "source": "Table 2"},
        {"what": "another scale's", "value": 71, **at, "scales": ["paper"]},
    ]
    recipe = Recipe(run.name, run.spec | {"published": entries})
    found = published.table_of(replace(run, graph=Graph({**run.graph.recipes, run.name: recipe})), table, {})
    assert found.published[0] == "15.6 %"
    assert list(found.ours) == ["19.0 % [17.9, 20.0]", "0.190 [0.179, 0.200]", *5 * [means.DASH]]
    assert list(found["our metric"][1:]) == [
        "heldout/accuracy at base-recipe/before",
        "aime24 is not evaluated at cpu scale",
        "heldout is not evaluated at cpu scale",
        "arm none was not run",
        "no heldout/pass@99 at base-recipe/before",
        "not measured here",
    ]


def test_failed_checks_come_first(run):
    checks = checks_table.health(health(run))
    assert list(checks.iloc[0][["state", "arm", "passed"]]) == ["warning", "no-cot-base", "0/3"]
    assert set(checks.state[1:]) == {"ok"}


@pytest.mark.parametrize(
    ("values", "ok", "worst"),
    [
        ([0.6, 0.9, 0.7], [False] * 3, "0.9"),  # farthest past the limit
        ([0.4, 0.6, 0.7], [True, False, False], "0.7"),
        ([0.1, 0.4, 0.2], [True] * 3, "0.4"),  # nearest to it
        ([0.1, math.nan, 0.2], [True, False, True], means.DASH),
        ([math.nan] * 3, [True] * 3, means.DASH),
    ],
)
def test_a_check_shows_its_worst_seed(values, ok, worst):
    rows = pd.DataFrame(
        {"arm": "a", "seed": range(3), "stage": "grpo", "check": "c", "ok": ok, "value": values}
    )
    shown = checks_table.health(rows.assign(limit=0.5, severity="warning", message=""))
    assert list(shown.value) == [worst]
    assert list(shown.passed) == [f"{sum(ok)}/3"]


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.8, "heldout/accuracy", "0.800"),
        (-0.0213, "heldout/accuracy", "\N{MINUS SIGN}0.021"),
        (39.26, "heldout/length", "39.3"),
        (39.26, "heldout/length/difficulty=3", "39.3"),
        (52.5, "updates_to/accuracy=0.5", "52.5"),
        (0.000412, "mean/clip_fraction", "0.000412"),
        (-3.3849, "mean/log10_clip_fraction", "\N{MINUS SIGN}3.38"),
        (math.nan, "heldout/accuracy", means.DASH),
    ],
)
def test_numbers_for_a_reader(value, metric, text):
    assert means.number(value, metric) == text


@pytest.mark.parametrize(("p", "text"), [(0.0284, "p = 0.028"), (3e-5, "p < 0.001"), (math.nan, "")])
def test_p_values_for_a_reader(p, text):
    assert claims_table.p_value(p) == text


def test_every_verdict_is_shown_with_what_it_could_have_seen(run, table):
    verdicts = claims.judge_all(run.spec["claims"], table, run.scale, run.seeds)
    shown = claims_table.verdicts_shown(verdicts).set_index("claim")
    assert shown.detectable["rl-lifts-accuracy"] == means.number(verdicts[0].detectable)
    assert 0 < float(shown.detectable["rl-lifts-accuracy"]) < 0.5
    assert shown["p by Holm"]["rl-lifts-accuracy"].startswith(("0.0", "< 0.001"))
    assert list(shown.loc["aime-majority", ["p by Holm", "detectable"]]) == [means.DASH] * 2
    assert f"detectable {shown.detectable['rl-lifts-accuracy']}, 3 seeds" in summary.foremost(verdicts)


@pytest.mark.parametrize(("seconds", "text"), [(9.4, "9 s"), (192, "3 min 12 s"), (7500, "2 h 05 min")])
def test_durations(seconds, text):
    assert means.duration(seconds) == text


def test_all_formats_are_written_and_escaped(tmp_path, run, table):
    frame = published.table_of(run, table, {}).assign(what="a_b & <c> | 100%")
    tables.write(tmp_path, "published", "A & B", frame, frame)
    assert "a\\_b \\& \\textless{}c\\textgreater{} | 100\\%" in (tmp_path / "published.tex").read_text()
    assert "a_b &amp; &lt;c&gt;" in (tmp_path / "published.html").read_text()
    assert "a_b & <c> \\| 100%" in (tmp_path / "published.md").read_text()
    assert json.dumps(frame.what[0]).strip('"') in (tmp_path / "published.csv").read_text()
    tables.write(tmp_path, "none", "None", frame.iloc[:0, :0], frame.iloc[:0, :0])
    assert "nothing to show" in (tmp_path / "none.md").read_text()


def test_how_soon_a_level_was_reached_is_a_final_number(run):
    claim = run.spec["claims"][0] | {"metric": "updates_to/accuracy=0.5"}
    recipe = Recipe(run.name, run.spec | {"claims": [claim]})
    table = collect(
        replace(run, graph=Graph({**run.graph.recipes, run.name: recipe}), arms=("base-recipe", "random"))
    )
    soon = measured(table, "base-recipe/grpo", "updates_to/accuracy=0.5")
    assert soon.value.between(13, 20).all()  # the toy's curve itself passes 0.5 near step 13
    assert measured(table, "random/grpo", "updates_to/accuracy=0.5").value.isna().all()
    assert set(measured(table, "random/grpo", "updates_to/budget").value) == {60}
    assert not table[table.node == "tiny_lm/pretrain"].metric.str.contains("_to/").any()
