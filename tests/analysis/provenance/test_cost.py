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


def test_one_more_seed_of_a_claim_costs_the_stages_of_both_sides_once(run):
    trained = jobs(run)
    seconds = trained.assign(wall_s=trained.arm.map({"base-recipe": 100.0, "format-only": 10.0}).fillna(1.0))
    of_a_seed = cost.of_a_seed(run, seconds)
    assert of_a_seed["format-alone-falls-short"] == 100 + 100 + 10  # the base, and a stage of each arm
    assert of_a_seed["rl-lifts-accuracy"] == 100 + 100
