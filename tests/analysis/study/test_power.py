"""The chances that a plan promises are those of the tests themselves, and few seeds are not trusted."""

import math

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats

from analysis.statistics.sequential import levels
from analysis.study import document, power
from analysis.study.power import Pilot, command, pilots, spread_of
from analysis.verdicts.rule import alpha_of
from encore.errors import UserError
from encore.recipe.looks import LOOKS

TEST = {"metric": "last/reward", "of": "a/train", "against": "b/train", "direction": "higher", "margin": 0.1}
CLAIM = {"says": "a ends higher.", "test": TEST, "primary": True}
STUDY = {
    "title": "A or B",
    "runs": {"train": {"files": ["{arm}-{seed}.csv"]}},
    "claims": {"higher": CLAIM},
}


def study(folder, **claims):
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(STUDY | ({"claims": claims} if claims else {})), encoding="utf-8")
    return path


def runs(folder, differences):
    for seed, difference in enumerate(differences):
        for arm, value in (("a", difference), ("b", 0.0)):
            pd.DataFrame({"step": [1], "reward": [value]}).to_csv(folder / f"{arm}-{seed}.csv", index=False)


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_the_chance_of_the_first_look_is_that_of_its_t_test(tmp_path, direction):
    """By the noncentral t distribution; so far from 0 that no other word than `shown` can come of it."""
    sign = 1 if direction == "higher" else -1
    claim = CLAIM | {"test": TEST | {"direction": direction, "smallest_effect": 0.01}}
    (stated,) = document.load(study(tmp_path, one=claim)).claims.values()
    critical = stats.t.isf(levels(alpha_of(1) / 2)[0], LOOKS[0] - 1)
    for spread in (0.05, 0.08, 0.12):
        (planned,) = power.power([Pilot(stated, sign * 0.25, spread, 0)])
        shift = (0.25 - 0.1) / spread * math.sqrt(LOOKS[0])
        assert planned.decided[0] == pytest.approx(stats.nct.sf(critical, LOOKS[0] - 1, shift), abs=0.04)
        assert list(planned.decided) == sorted(planned.decided)
        assert planned.decided_at_bound == planned.decided  # a given spread has no bound


def test_a_truth_as_far_from_the_bound_as_is_found_is_decided_in_four_of_five_studies(tmp_path):
    (stated,) = document.load(study(tmp_path)).claims.values()
    (planned,) = power.power([Pilot(stated, 0.0, 0.05, 0)])
    for index, found in enumerate(planned.found):
        (there,) = power.power([Pilot(stated, 0.1 + found, 0.05, 0)])
        # by the second and third look an earlier one may have decided too
        assert there.decided[index] >= 0.8 - 0.04
        (shared,) = power.power([Pilot(stated, 0.1 + found, 0.05, 0, error=0.05)])
        assert shared.decided[index] < there.decided[index] - 0.1  # no number of seeds lessens it


def test_the_spread_of_few_seeds_has_a_bound_that_is_rarely_too_low(tmp_path):
    (stated,) = document.load(study(tmp_path)).claims.values()
    drawn = np.random.default_rng(0).normal(0, 0.05, (4000, 3)).std(axis=1, ddof=1)
    bounds = np.array([Pilot(stated, 0.0, spread, 3).upper for spread in drawn])
    assert np.mean(bounds > 0.05) == pytest.approx(0.8, abs=0.02)


def test_a_pilot_is_the_runs_that_are_there(tmp_path):
    runs(tmp_path, [0.2, 0.3, 0.25])
    path = study(tmp_path)
    (pilot,) = pilots(document.load(path), tmp_path, None)
    assert (pilot.effect, pilot.spread, pilot.seeds) == (pytest.approx(0.25), pytest.approx(0.05), 3)
    said = command(path, None, None)
    table = pd.read_csv(tmp_path / "study/power.csv")
    assert list(table.seeds) == list(LOOKS)
    assert (table.decided_at_bound <= table.decided).all()
    assert said[0] == "higher: +0.25, a spread of 0.05 over seeds (3 seeds of a pilot)"
    assert said[-2].startswith("4 seeds decide nothing here; their 95% intervals would be ±0.0796")


def test_without_two_seeds_a_spread_must_be_said(tmp_path):
    runs(tmp_path, [0.2])
    with pytest.raises(
        UserError, match=r"claims\.higher: one seed has both sides; a spread needs two seeds; .*give --spread"
    ):
        command(study(tmp_path), None, None)
    assert command(study(tmp_path), "0.05", None)[0].startswith(
        "higher: +0.2, a spread of 0.05 over seeds (as"
    )
    with pytest.raises(UserError, match="--spread: expected a number above 0, or RECORD/CLAIM, got -1"):
        command(study(tmp_path), "-1", None)


def test_the_spread_of_a_record_is_that_of_its_differences():
    rows = pd.read_csv(power.RECORDS / "r1_zero-cpu/claims.csv", index_col="id")
    row = rows.loc["rl-lifts-accuracy"]
    half = (row.plain_high - row.plain_low) / 2  # of a 95% t interval
    expected = half / stats.t.isf(0.025, row.n - 1) * math.sqrt(row.n)
    assert spread_of("r1_zero-cpu/rl-lifts-accuracy") == pytest.approx(expected, rel=0.2)
    with pytest.raises(UserError, match=r'no record "r1_zer-cpu"; did you mean "r1_zero-cpu"\?'):
        spread_of("r1_zer-cpu/rl-lifts-accuracy")
    with pytest.raises(UserError, match='r1_zero-cpu has no claim "rl-lifts"'):
        spread_of("r1_zero-cpu/rl-lifts")
