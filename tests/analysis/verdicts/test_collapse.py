"""Runs that ended far below where they began, and what is said of those not seen."""

import math

import pandas as pd
import pytest
from judged_claims import comparison
from toy_run import changed

from analysis.numbers.table import final, measured
from analysis.verdicts import collapse

METRIC = {"metric": "heldout/gold"}


def ending(run, numbers: pd.DataFrame, high: dict[int, float]) -> pd.DataFrame:
    """The numbers, but that the first arm's last evaluation has these upper ends, by seed."""
    metric, (_, last) = "heldout/accuracy", run.ends
    changed_numbers = numbers.copy()
    for seed, value in high.items():
        at = (numbers.arm == run.arms[0]) & (numbers.node == last) & (numbers.metric == metric)
        changed_numbers.loc[at & (numbers.seed == seed), "high"] = value
    return changed_numbers


def test_a_run_that_surely_ends_below_half_of_where_it_began_has_collapsed(run, numbers):
    assert not collapse.collapses(run, numbers).seeds[run.arms[0]]
    first = numbers[(numbers.node == run.ends[0]) & (numbers.metric == "heldout/accuracy")].value.iloc[0]
    found = collapse.collapses(run, ending(run, numbers, {0: 0.51 * first, 1: 0.49 * first, 2: 0.99}))
    assert found.seeds[run.arms[0]] == {1}
    assert not found.seeds[f"{run.arms[0]}/{run.ends[0]}"]


def test_rates_have_exact_intervals(run, numbers):
    """Clopper and Pearson: of 1 in 3 from 0.008 to 0.906; none in 3 excludes 1 - 0.05^(1/3)."""
    rates = collapse.rates(run, ending(run, numbers, {1: 0.01})).set_index("arm")
    first = rates.loc[run.arms[0]]
    assert (first.runs, first.collapsed) == (3, 1)
    assert (first.low, first.high) == pytest.approx((0.00840, 0.90570), abs=1e-4)
    assert math.isnan(first.unseen)
    other = rates.loc["random"]
    assert other.collapsed == 0
    assert other.unseen == pytest.approx(1 - 0.05 ** (1 / 3))
    shown = collapse.rates_shown(rates.reset_index()).set_index("arm")
    assert shown.collapsed[run.arms[0]] == "1/3"
    assert shown["may be unseen"]["random"] == "up to 63%"


@pytest.mark.parametrize(("seeds", "bound"), [(5, 0.45), (16, 0.17), (32, 0.09)])
def test_the_bound_on_unseen_collapse(seeds, bound):
    assert 1 - 0.05 ** (1 / seeds) == pytest.approx(bound, abs=0.005)


def test_gold_reward_collapses_by_a_standard_deviation(rlhf, rlhf_table):
    gold = final(rlhf_table).copy()
    arm, (first, last) = rlhf.arms[0], rlhf.ends
    rows = (gold.arm == arm) & (gold.metric == "heldout/gold")
    begin = gold[rows & (gold.node == first)].set_index("seed").value
    for seed, lost in ((0, 1.01), (1, 0.99)):
        gold.loc[rows & (gold.node == last) & (gold.seed == seed), "high"] = begin[seed] - lost
    assert collapse.collapses(rlhf, gold).seeds[arm] == {0}


def test_an_arm_with_one_checkpoint_has_no_beginning(run, numbers):
    alone = changed(run, evals=run.recipe.layers.content["evals"] | {"checkpoints": {"after": "grpo"}})
    assert collapse.rates(alone, numbers).empty


def test_an_arm_that_leaves_out_its_beginning_begins_where_another_arm_was_evaluated(run, numbers):
    arms = run.recipe.layers.content["arms"]
    without = {"evals": {"checkpoints": {"before": None}}}
    short = changed(
        run, arms=arms | {"random": arms["random"] | without, "no-cot-base": arms["no-cot-base"] | without}
    )
    seen = numbers[~(numbers.arm.isin(["random", "no-cot-base"]) & (numbers.node == "before"))].copy()
    end = (seen.node == "after") & (seen.metric == "heldout/accuracy") & (seen.seed == 1)
    seen.loc[end & seen.arm.isin(["random", "no-cot-base"]), "high"] = 0.001
    assert collapse.collapses(short, seen).seeds["random"] == {1}
    rates = collapse.rates(short, seen).set_index("arm")
    assert rates.collapsed["random"] == 1
    assert "no-cot-base" not in rates.index  # its base model was evaluated in no other arm


def test_a_claim_within_one_arm_or_on_its_beginning_is_not_about_two_kinds_of_run():
    found = collapse.Collapses({"a": frozenset({1}), "a/before": frozenset()})
    for places in (
        {"of": "a/after", "against": "a/before"},
        {"of": "a/after"},
        {"of": "b/after", "against": "a/before"},
    ):
        assert found.beside(comparison(METRIC | places), [0, 1, 2]) is None
    assert found.beside(comparison(METRIC | {"of": "b/after", "against": "a/after"}), [0, 1, 2]) is not None


def test_a_claim_about_the_rate_of_collapse_is_judged_where_one_arm_collapses():
    found = collapse.Collapses({"a": frozenset({1})})
    claim = {"of": "b/grpo", "against": "a/grpo"}
    assert found.beside(comparison(METRIC | claim), [0, 1, 2]) is not None
    assert found.beside(comparison({"metric": "collapsed/accuracy"} | claim), [0, 1, 2]) is None


def test_what_collapses_later_has_no_part_in_a_number_from_before(run, numbers):
    """A cold start is judged by itself, whatever RL makes of it afterwards."""
    (arm, other), (first, last) = run.arms[:2], run.ends
    before = numbers[(numbers.arm == arm) & (numbers.node == first)]
    checkpoints = run.recipe.layers.content["evals"]["checkpoints"]
    staged = changed(
        run,
        evals=run.recipe.layers.content["evals"]
        | {"checkpoints": {first: checkpoints[first], "mid": "grpo"} | checkpoints},
    )
    staged_numbers = pd.concat([ending(run, numbers, {1: 0.01}), before.assign(node="mid")])
    found = collapse.collapses(staged, staged_numbers)
    at = {"metric": "heldout/accuracy", "against": f"{other}/{last}"}
    assert found.beside(comparison(at | {"of": f"{arm}/{last}"}), [0, 1, 2]) is not None
    assert found.beside(comparison(at | {"of": f"{arm}/mid"}), [0, 1, 2]) is None
    assert (
        found.beside(comparison(at | {"of": f"{arm}/grpo"}), [0, 1, 2]) is not None
    )  # a stage: by the arm's end


def test_a_number_read_next_to_a_collapsed_run_counts_as_one_of_it(rlhf, rlhf_table):
    """At the far end of the frontier. What is read nearer to its beginning has no part in it, though a place
    there is of the arm that collapsed later."""
    gold = final(rlhf_table).copy()
    end = gold.arm.isin(["kl-none", "base-recipe"]) & (gold.node == "after") & (gold.metric == "heldout/gold")
    gold.loc[end & (gold.seed == 1), "high"] = -9.0
    near, far = "heldout/gold_at_kl/1", "heldout/gold_at_kl/20"  # of places at about 0, 2.6, 9 and 36 nats
    places = ["base-recipe/sft", "kl-strong/after", "base-recipe/after", "kl-none/after"]
    claims = [METRIC | {"metric": metric, "of": "frontier/ppo"} for metric in (near, far)]
    found = collapse.collapses(changed(rlhf, claims=claims, frontiers={"ppo": places}), gold)
    assert found.seeds["base-recipe"] == found.seeds["kl-none"] == {1}
    assert found.read == {("frontier/ppo", near): set(), ("frontier/ppo", far): {1}}
    against = {"against": "dpo/after", "against_metric": "heldout/gold"}
    assert found.beside(comparison(claims[0] | against), [0, 1]) is None
    text = "1 of 2 runs of frontier/ppo collapsed, 0 of 2 of {} (Boschloo's exact test: p = "
    assert str(found.beside(comparison(claims[1] | against), [0, 1])).startswith(text.format("dpo"))
    other = comparison(claims[1] | {"against": "frontier/other"})
    assert str(found.beside(other, [0, 1])).startswith(text.format("frontier/other"))
    assert (
        found.beside(comparison(claims[1] | {"against": "frontier/ppo", "against_metric": near}), [0, 1])
        is None
    )


def fallen_at_the_end(rlhf, rlhf_table) -> pd.DataFrame:
    gold = final(rlhf_table).copy()
    end = (gold.arm == "base-recipe") & (gold.node == "after") & (gold.metric == "heldout/gold")
    gold.loc[end & (gold.seed == 1), "high"] = -9.0
    return gold


def test_a_reward_model_is_trained_before_the_policy_collapses(rlhf, rlhf_table):
    found = collapse.collapses(rlhf, fallen_at_the_end(rlhf, rlhf_table))
    asked = {"metric": "accuracy/validation", "against": "dpo/dpo"}
    assert found.beside(comparison(asked | {"of": "base-recipe/reward_model"}), [0, 1]) is None
    assert found.beside(comparison(asked | {"of": "base-recipe/ppo"}), [0, 1]) is not None


def test_gold_on_a_curve_is_of_a_collapsed_run_where_it_lies_itself_far_below(rlhf, rlhf_table):
    gold, metric, place = fallen_at_the_end(rlhf, rlhf_table), "gold_at_kl/3.5", "base-recipe/ppo"
    begin = measured(gold, f"base-recipe/{rlhf.checkpoints('base-recipe')[0]}", "heldout/gold").value
    claim = {"metric": metric, "of": place, "against": "kl-none/ppo"}
    run = changed(rlhf, claims=[claim])

    def read(fall: float) -> collapse.Rates | None:
        rows = gold[(gold.arm == "base-recipe") & (gold.node == "ppo")].drop_duplicates("seed")
        rows = rows.assign(metric=metric, value=rows.seed.map(begin) - fall * (rows.seed == 1))
        return collapse.collapses(run, pd.concat([gold, rows])).beside(comparison(claim), [0, 1])

    assert read(0.99) is None
    assert read(1.01) == collapse.Rates("base-recipe", "kl-none", 1, 0, runs=2)


def test_one_sided_collapse_is_some_runs_of_one_arm():
    assert collapse.Rates("a", "b", 3, 0, runs=8).one_sided
    assert not collapse.Rates("a", "b", 3, 1, runs=8).one_sided
    assert not collapse.Rates("a", "b", 0, 8, runs=8).one_sided  # all of them: of one kind
