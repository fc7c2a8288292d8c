"""The table of costs."""

import pandas as pd
import pytest

from analysis.provenance import cost
from analysis.provenance.jobs import jobs


def test_nothing_shared_is_counted_twice(run):
    spent = cost.cost(run, jobs(run))
    assert spent.runs.iloc[-1] == 2 + 6 * 3  # two base models, six arms by three seeds
    assert spent.runs.iloc[:-1].sum() == spent.runs.iloc[-1]


def test_what_was_planned_stands_beside_what_it_took(run):
    spent = cost.cost(run, jobs(run))
    assert (spent.planned_s > 0).all()
    assert spent.planned_s.iloc[-1] == pytest.approx(spent.planned_s[:-1].sum())
    shown = cost.cost_shown(spent)
    assert float(shown["of plan"].iloc[-1]) == round(spent.wall_s.iloc[-1] / spent.planned_s.iloc[-1], 2)


def test_elapsed_time_counts_what_ran_side_by_side_once_and_no_pause():
    started = ["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:30+00:00", "2026-01-01T01:00:00+00:00", None]
    trained = pd.DataFrame({"started": started, "wall_s": [60.0, 60.0, 10.0, 5.0]})
    assert cost.elapsed(trained) == 100.0
    assert cost.elapsed(trained[:0]) == 0.0
