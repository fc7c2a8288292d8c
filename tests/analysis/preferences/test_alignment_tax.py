"""Accuracy on other tasks, and win rates by task."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from toy_run import changed

from analysis.numbers.table import final
from analysis.preferences import alignment_tax, contenders


def test_win_rates_by_task_need_two_tasks(preferred):
    numbers = pd.DataFrame(
        [
            {"arm": one.arm, "node": one.checkpoint, "step": np.nan, "metric": f"{task}/win_rate", "seed": 0,
             "value": 0.1 * place, "low": np.nan, "high": np.nan, "source": one.name}
            for place, one in enumerate(preferred.policies)
            for task in ("heldout", "greedy")
        ]
    )  # fmt: skip
    both = alignment_tax.by_task(numbers, "heldout", ["heldout", "greedy"], preferred.policies)
    shown = alignment_tax.by_task_shown(both).set_index("")
    assert shown.loc["dpo"].tolist() == ["0.600", "0.600"]
    assert not len(alignment_tax.by_task(numbers, "heldout", ["heldout", "tax-sort"], preferred.policies))


def test_a_policy_of_another_size_is_measured_from_its_own_start(run, table, preferred):
    needs = {"sft": {"needs": {"policy": "tiny_lm/pretrain@no-cot"}}}
    arms = run.recipe.layers.content["arms"] | {"large": {"stages": needs}}
    large = replace(changed(run, arms=arms), arms=("base-recipe", "large"))
    rows = final(table)
    other = rows[(rows.arm == "kl-none")].assign(arm="large", source=rows.source + "-large")
    both = pd.concat([rows[rows.arm == "base-recipe"], other])
    among = contenders.contenders(large, both, "heldout")
    assert [(one.name, one.shared) for one in among] == [
        ("base-recipe/base", False), ("base-recipe/sft", False), ("base-recipe", False),
        ("large/base", False), ("large/sft", False), ("large", False),
    ]  # fmt: skip
    assert contenders.own_start(large, among[-1], among[1]).at == "large/sft"
    tax = alignment_tax.tax(large, both, "heldout", among, among[1]).set_index(["policy", "task"])
    assert math.isnan(tax.loc[("large/sft", "tax-sort"), "change"])
    assert tax.loc[("large", "tax-sort"), "change"] == pytest.approx(
        preferred.tables["alignment_tax"].set_index(["policy", "task"]).loc[("kl-none", "tax-sort"), "change"]
    )


def test_a_task_of_lm_eval_is_measured_by_its_own_metric(run, table, preferred):
    rows = final(table)
    right = rows[rows.metric == "tax-sort/accuracy"]
    both = pd.concat([rows, right.assign(metric="tax-sort/score", value=right.value / 2)])
    found, before = (
        alignment_tax.tax(run, numbers, "heldout", preferred.policies, None).set_index(["policy", "task"])
        for numbers in (both, rows)
    )
    share = {"tax-sort": 0.5, "tax-chain": 1.0}
    assert {task for _, task in before.index} == set(share)
    for (policy, task), mean in before.accuracy.items():
        assert found.accuracy[policy, task] == pytest.approx(share[task] * mean)
