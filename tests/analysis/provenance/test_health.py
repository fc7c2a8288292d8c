"""The table of health checks."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest

from analysis.numbers import means
from analysis.provenance import health


def test_failed_checks_come_first(run):
    checks = health.worst(health.checks(run))
    assert list(checks.iloc[0][["state", "arm", "passed"]]) == ["warning", "no-cot-base", "0/3"]
    assert set(checks.state[1:]) == {"ok"}


def test_the_checks_of_an_evaluation_are_shown_too(run, tmp_path):
    evaluation = next(node for node in run.all_nodes() if node.kind == "eval")
    said = {"check": "verifier_fails", "ok": False, "value": 0.5, "limit": 0.0, "severity": "warning"}
    path = tmp_path / evaluation.sentinel
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"health": [said | {"message": "one of two"}]}))
    [row] = health.worst(health.checks(replace(run, root=tmp_path))).to_dict("records")
    assert (row["state"], row["stage"], row["message"]) == ("warning", run.label(evaluation), "one of two")


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
    shown = health.worst(rows.assign(limit=0.5, severity="warning", message=""))
    assert list(shown.value) == [worst]
    assert list(shown.passed) == [f"{sum(ok)}/3"]
