from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from judged_claims import flat
from toy_run import changed

from analysis.numbers import means
from analysis.numbers import table as table_module
from analysis.numbers.run import Run
from analysis.numbers.table import COLUMNS, collect, measured
from analysis.provenance import cost, health
from analysis.provenance.jobs import jobs


def test_every_number_is_a_row_of_the_contract(table, run):
    assert list(table.columns) == COLUMNS
    assert set(table.arm) == set(run.arms)
    assert set(table.node) == {"tiny_lm/pretrain", "grpo", "before", "after"}
    assert not table.duplicated(["arm", "seed", "node", "step", "metric"]).any()


def test_a_shared_checkpoint_appears_for_each_arm_that_uses_it(table):
    rows = [measured(table, f"{arm}/before", "heldout/accuracy") for arm in ("base-recipe", "random")]
    assert len(rows[0]) == 3
    assert rows[0].equals(rows[1])
    of_seeds = "results/toy_zero/cpu/{}/seed{}/evals/before.json"
    assert list(rows[1].source) == [of_seeds.format("base-recipe", seed) for seed in range(3)]
    own = measured(table, "no-cot-base/before", "heldout/accuracy")
    assert list(own.source) == [of_seeds.format("no-cot-base", seed) for seed in range(3)]


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
    assert len(health.checks(empty)) == len(jobs(empty)) == 0
    assert cost.cost(empty, jobs(empty)).iloc[-1].wall_s == 0


def test_how_soon_a_level_was_reached_is_a_final_number(run):
    claim = flat(run.recipe.layers.content)[0] | {"metric": "updates_to/accuracy=0.5"}
    table = collect(replace(changed(run, claims=[claim]), arms=("base-recipe", "random")))
    soon = measured(table, "base-recipe/grpo", "updates_to/accuracy=0.5")
    assert soon.value.between(13, 20).all()  # the toy's curve itself passes 0.5 near step 13
    assert measured(table, "random/grpo", "updates_to/accuracy=0.5").value.isna().all()
    assert set(measured(table, "random/grpo", "updates_to/budget").value) == {60}
    assert not table[table.node == "tiny_lm/pretrain"].metric.str.contains("_to/").any()


@pytest.mark.parametrize("where", ["gates", "claims", "published"])
def test_what_is_read_from_a_curve_is_there_for_all_that_name_it(run, where):
    row = {"metric": "auc/length/incorrect", "of": "random/grpo", "against": "base-recipe/grpo",
           "against_metric": "updates_to/accuracy=0.5"}  # fmt: skip
    number = {"what": "x", "value": 1.0, "source": "Fig. 1"}
    asked = [{"at": "random/grpo", "metric": "auc/length/incorrect"}, {"metric": "updates_to/accuracy=0.5"}]
    published = [number, *(number | more for more in asked)]
    named = {"gates": {"long": row}, "claims": [row], "published": published}
    without = changed(run, claims=[], published=[])
    table = collect(replace(changed(without, **{where: named[where]}), arms=("random",), seeds=(0,)))
    curve = table[(table.metric == "length/incorrect") & (table.arm == "random")].set_index("step").value
    read = measured(table, "random/grpo", "auc/length/incorrect").value[0]
    assert read == pytest.approx(np.trapezoid(curve, curve.index) / 59)
    assert len(measured(table, "random/grpo", "updates_to/accuracy=0.5")) == 1
    assert not collect(without).metric.str.match("auc/|updates_to/").any()


def test_peaks_that_a_gate_names(rlhf):
    gates = {"far": {"metric": "gold_at_kl/3.5", "of": "kl-none/ppo"}}
    table = collect(replace(changed(rlhf, gates=gates, claims=[]), arms=("kl-none",), seeds=(0,)))
    assert measured(table, "kl-none/ppo", "gold_at_kl/3.5").value.notna().all()


def test_long_curves_are_thinned_without_moving_them():
    steps = range(1, 10_001)
    rows = pd.DataFrame({"step": steps, "seed": 0, "value": [float(s) for s in steps]})
    thin = table_module.binned(rows)
    assert len(thin) == table_module.POINTS
    assert thin[0].to_list() == pytest.approx(thin.index.to_list())
