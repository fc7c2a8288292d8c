"""A table of numbers, given by a program, is judged as a study and a recipe are, or refused in one line."""

import math
import random
from pathlib import Path

import pandas as pd
import pytest
import yaml
from papers import RECIPES

from analysis.numbers.recorded import of_record
from analysis.study import document
from analysis.study.judge import judge as judge_study
from analysis.study.judge import write
from analysis.verdicts import claims
from encore import judging
from encore.errors import UserError
from encore.judging import Claim, Test, judge
from encore.recipe.graph import Graph

ROOT = Path(__file__).parents[3]
# A record that needs nothing a table cannot know: it has no gates, and its collapses are of whole arms.
RECORD = ROOT / "results/published/gdpo-cpu"
SAME = ("word", "low", "high", "estimate", "level", "n", "look", "seeds", "agree", "needed")
HIGHER = Claim(
    says="A ends higher.",
    test=Test(metric="reward", of="a", against="b", direction="higher", margin=0.02),
    primary=True,
)
CLAIMS = {"higher": HIGHER}


def numbers(seeds=8):
    """Rewards of two arms, a row for each seed."""
    rows = [
        {
            "arm": arm,
            "seed": seed,
            "metric": "reward",
            "value": level + random.Random(f"{arm}{seed}").random(),
        }
        for arm, level in (("a", 2.0), ("b", 0.0))
        for seed in range(1, seeds + 1)
    ]
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def recorded():
    """The final numbers of a record, and its claims as a study has them."""
    _, table = of_record(RECORD, Graph(RECIPES))
    content = RECIPES["gdpo"].layers.content["claims"]
    stated = {claim.id: content[claim.id] for claim in RECIPES["gdpo"].claims("cpu")}
    kept = ("says", "test", "primary")
    asked = {name: {key: said[key] for key in kept if key in said} for name, said in stated.items()}
    return table[table.step.isna()], asked


def same(verdicts, others):
    assert [verdict.id for verdict in verdicts] == [verdict.id for verdict in others]
    for verdict, other in zip(verdicts, others, strict=True):
        for name in SAME:
            expected = getattr(other, name)
            number = isinstance(expected, float)
            expected = pytest.approx(expected, rel=1e-6, nan_ok=True) if number else expected
            assert getattr(verdict, name) == expected, (verdict.id, name)


def test_one_set_of_numbers_gets_the_same_verdicts_by_a_table_a_study_and_a_recipe(recorded, tmp_path):
    table, asked = recorded
    by_recipe = claims.read_verdicts(RECORD / "claims.csv")
    by_table = judge(table, {name: document.StudyClaim.model_validate(said) for name, said in asked.items()})
    same(by_table, by_recipe)
    assert {verdict.word for verdict in by_table} == {"shown", "open", "reversed"}
    sides = [said["test"].get(key, "") for said in asked.values() for key in ("of", "against")]
    places = {side.partition("/")[2] for side in sides if side}
    for place in places:
        rows = table[table.node == place]
        rows[["arm", "seed", "metric", "value", "low", "high"]].to_csv(tmp_path / f"{place}.csv", index=False)
    runs = {place: {"files": [f"{place}.csv"]} for place in places}
    text = yaml.safe_dump({"title": "A record", "runs": runs, "claims": asked}, sort_keys=False)
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    study = document.load(tmp_path / "study.yaml")
    by_study = judge_study(study, tmp_path)
    same(by_study.verdicts, by_table)
    write(by_study, tmp_path)
    same(judge(pd.read_csv(tmp_path / "numbers.csv"), study.claims), by_study.verdicts)


def test_a_verdict_is_frozen_and_has_its_interval_seeds_and_look():
    (verdict,) = verdicts = judge(numbers(), CLAIMS)
    assert (verdict.word, verdict.look, verdict.seeds) == ("shown", 8, tuple(range(1, 9)))
    low, high = verdict.interval
    assert 0.02 < low < verdict.difference.value < high
    assert verdicts.frame().word.tolist() == ["shown"]
    with pytest.raises(AttributeError):
        verdict.word = "open"


def test_a_claim_may_stand_in_several_mappings_under_several_names():
    first, second = judge(numbers(), CLAIMS), judge(numbers(), {"another": HIGHER})
    assert (first[0].id, second[0].id) == ("higher", "another")


def test_an_arm_may_name_its_place():
    table = numbers().assign(arm=lambda rows: rows.arm + "/after")
    test = HIGHER.test.model_copy(update={"of": "a/after", "against": "b/after"})
    assert judge(table, {"higher": HIGHER.model_copy(update={"test": test})})[0].word == "shown"


def test_a_run_that_all_seeds_share_counts_its_error_once():
    base = numbers().query("arm == 'b'").assign(value=0.5, low=0.4, high=0.6, source="base model")
    table = pd.concat([numbers().query("arm == 'a'"), base])
    (verdict,) = judge(table, CLAIMS)
    assert "one run for all 8 seeds" in verdict.note
    low, high = verdict.interval
    alone = judge(table.drop(columns=["low", "high", "source"]), CLAIMS)[0]
    assert low < alone.low
    assert high > alone.high


def test_columns_and_metrics_that_no_claim_asks_for_may_be_anything():
    table = numbers()
    further = table.assign(metric="loss", value=math.nan)
    assert judge(pd.concat([table, further, further]).assign(note="x"), CLAIMS) == judge(table, CLAIMS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[:-1], "b has no reward for seed 8: run it, or leave the seed out of all arms"),
        (lambda rows: rows[rows.seed < 4], "3 seeds: nothing is decided below 8"),
        (
            lambda rows: pd.concat([rows, rows[:2]]),
            "a, seed 1: reward comes again: expected one number a run",
        ),
        (lambda rows: rows.assign(value=rows.value.where(rows.index > 0)), "a, seed 1: reward is nan, not a"),
        (lambda rows: rows.assign(value=math.inf), "reward is inf, not a finite number"),
        (lambda rows: rows.assign(value="<b>"), "reward is <b>, not a finite number"),
        (lambda rows: rows.assign(seed=1.5), "column seed: expected whole numbers, got 1.5"),
        (lambda rows: rows.assign(seed=None), "column seed: expected whole numbers, got None"),
        (
            lambda rows: rows.assign(low=1.0, high=0.0),
            "a, seed 1: reward has an interval from 1.0 to 0.0 (and 15 more)",
        ),
        (lambda rows: rows.assign(low=1.0), "reward has an interval from 1.0 to nan"),
        (lambda rows: rows.assign(step=3), "expected one number a run, without a step"),
        (lambda rows: rows.rename(columns={"value": "vlaue"}), 'no column "value"; did you mean "vlaue"?'),
        (lambda rows: rows.replace("b", "bb"), 'no arm "b"; did you mean "bb"?'),
        (lambda rows: rows[rows.arm == "a"], 'no arm "b"; valid: a'),
        (lambda rows: rows[:0], "no rows"),
        (lambda rows: pd.concat([rows, rows.arm], axis=1), 'column "arm" comes twice'),
    ],
)
def test_numbers_that_cannot_be_judged_are_refused_in_one_line(change, said):
    with pytest.raises(UserError) as error:
        judge(change(numbers()), CLAIMS)
    assert said in str(error.value)
    assert len(error.value.lines) == 1


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({}, "claims: expected one or more"),
        ({"higher": HIGHER.test}, "claims.higher: expected a Claim, got Test"),
        ({"higher": HIGHER.model_copy(update={"test": HIGHER.test.model_copy(update={"margin": 0.0})})},
         "claims.higher.test.smallest_effect: missing"),
        ({"higher": Claim(says="A.", test=HIGHER.test, scales=("cpu",))}, "claims.higher.scales: a key of"),
    ],
)  # fmt: skip
def test_claims_that_cannot_be_judged_are_refused_in_one_line(stated, said):
    with pytest.raises(UserError) as error:
        judge(numbers(), stated)
    assert said in str(error.value)
    assert len(error.value.lines) == 1


def test_every_public_name_is_in_the_manual_and_in_the_docstring():
    manual = (ROOT / "docs/judge.md").read_text(encoding="utf-8")
    for name in judging.__all__:
        assert f"`{name}" in manual, name
        assert f"`{name}" in judging.__doc__, name


def test_equivalence_is_shown_by_two_one_sided_tests():
    """The larger of the p-values of scipy's two one-sided t tests."""
    from scipy import stats  # only here

    differences = [random.Random(seed).gauss(0.01, 0.05) for seed in range(8)]
    below = stats.ttest_1samp(differences, 0.1, alternative="less").pvalue
    above = stats.ttest_1samp(differences, -0.1, alternative="greater").pvalue
    assert judging.tost(differences, 0.1) == pytest.approx(max(below, above))
    assert math.isnan(judging.tost([0.0], 0.1))
