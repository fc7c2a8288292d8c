"""What one checkpoint solves beside another: against counts by hand, and simulated problems."""

import json
import math

import numpy as np
import pytest
from toy_run import changed

from analysis.numbers import coverage
from analysis.numbers.table import collect, final, measured
from encore.recipe.metric_names import COVERED, FAMILIAR
from evals.passk import pass_at_k


def row(item, correct, perplexity=None, task="heldout", question=None):
    made = {"task": task, "item": item, "question": question or f"q{item}", "correct": correct}
    return made | ({"perplexity": perplexity} if perplexity else {})


def numbers(before, after, k=(1, 2, 4)):
    found = coverage.compared(before, after, {"heldout": k})
    return {name.removeprefix("heldout/"): number["value"] for name, number in found.items()}


def counts(rights, n):
    """(problems, n) of bool, the first so many right."""
    return np.array([[i < c for i in range(n)] for c in rights])


def test_the_solved_sets_are_counted_by_problem():
    before = [row(0, [1, 0, 0, 0]), row(1, [0, 0, 0, 1]), row(2, [0] * 4), row(3, [0] * 4), row(4, [1] * 4)]
    after = [row(0, [1] * 4), row(1, [0] * 4), row(2, [0, 1, 0, 0]), row(3, [0] * 4), row(4, [1] * 4)]
    found = numbers(before, after)
    assert [found[name] for name in ("both", "gained", "lost", "neither")] == [0.4, 0.2, 0.2, 0.2]
    assert (found["ahead"], found["behind"]) == (0.4, 0.2)
    assert set(found) == set(COVERED)


def test_rows_are_matched_by_item_and_question_and_unverified_ones_left_out():
    before = [row(0, [1, 0]), row(1, [0, 0]), row(2, [None, None]), row(3, [1, 1], task="other")]
    after = [row(1, [1, 0]), row(0, [1, 1]), row(2, [None, None]), row(4, [1, 1])]
    assert numbers(before, after, (1, 2))["gained"] == 0.5
    assert numbers(before, [row(0, [1, 1], question="another")]) == {}
    assert coverage.compared(before, after, {"heldout": ()}) == {}


def test_of_more_samples_as_many_are_drawn_as_the_other_has():
    before = [row(0, [1, 0, 0, 0])]
    assert numbers(before, [row(0, [1, 1])], (1, 2, 4))["both"] == pytest.approx(
        0.5
    )  # a right one among 2 of 4
    assert numbers(before, [row(0, [0, 0])], (1, 2, 4))["lost"] == pytest.approx(0.5)


@pytest.mark.parametrize("rights", [[0, 1, 2, 5], [8, 0, 0, 3], [1, 1, 1, 1]])
def test_what_chance_gains_is_what_a_random_half_solves_and_the_other_not(rights):
    correct = counts(rights, 8)
    rng = np.random.default_rng(0)
    simulated = np.mean(
        [
            [half[:4].any() > half[4:].any() for half in (rng.permutation(one) for one in correct)]
            for _ in range(2000)
        ]
    )
    found = dict(coverage.coverage(coverage.Pair(correct, correct), [1, 8]))
    assert found["gained_by_chance"]["value"] == pytest.approx(simulated, abs=0.03)


def test_the_crossover_is_where_the_mean_curves_meet():
    """The one is right on half of the problems always, the other on all of them, sometimes."""
    n, ks = 64, [1, 2, 4, 8, 16, 32, 64]
    before, after = counts([6] * 40, n), counts([64] * 20 + [0] * 20, n)
    found = dict(coverage.coverage(coverage.Pair(before, after), ks))
    k = next(k for k in range(1, 65) if pass_at_k(before, k).mean() > 0.5)
    at = found["crossover"]
    assert k - 1.3 < at["value"] < k + 0.3
    assert at["low"] < at["value"] < at["high"]
    assert found["crossed"]["value"] > 0.99
    assert (found["ahead"]["value"], found["behind"]["value"]) == (0.5, 0.5)


def test_no_crossover_where_one_is_ahead_at_every_k():
    before, after = counts([1] * 30, 16), counts([4] * 30, 16)
    found = dict(coverage.coverage(coverage.Pair(before, after), [1, 4, 16]))
    assert math.isnan(found["crossover"]["value"])
    assert found["crossed"]["value"] == 0.0
    assert (
        dict(coverage.coverage(coverage.Pair(after, before), [1, 4]))["crossed"]["value"] == 0.0
    )  # never ahead


def test_how_surely_curves_cross_is_a_share_of_resamples():
    """One problem of ten is lost, the rest sure: the curves cross in each resample that has it."""
    before, after = counts([1] + [32] * 9, 64), counts([0] + [64] * 9, 64)
    share = dict(coverage.coverage(coverage.Pair(before, after), [1, 64]))["crossed"]["value"]
    assert share == pytest.approx(1 - 0.9**10, abs=0.04)


def test_familiar_are_right_answers_within_what_the_base_finds_usual():
    theirs = [row(i, [1, 0], [1.0 + i / 100, 9.0]) for i in range(101)]
    ours = [row(i, [1, 1], [1.5, 1.97]) for i in range(101)]
    assert numbers(theirs, ours, (1, 2))[FAMILIAR] == 0.5  # 95% of the base's are at most 1.95
    nothing = [row(i, [0, 0], [1.0, 9.0]) for i in range(101)]
    assert FAMILIAR not in numbers(nothing, ours, (1, 2))
    assert math.isnan(numbers(theirs, nothing, (1, 2))[FAMILIAR])  # none of its answers is right


def test_a_run_has_them_of_each_arm_where_its_recipe_asks(run, table):
    covered = final(collect(changed(run, coverage="before")))
    assert "heldout/gained" not in set(table.metric)
    place = "base-recipe/after", "heldout/gained"
    found = measured(covered, *place)
    assert list(found.index) == [0, 1, 2]
    assert not len(measured(covered, "base-recipe/before", "heldout/gained"))
    node = run.evaluation("base-recipe", "after", 0)
    sides = []
    for name in ("before", "after"):
        rows = run.samples(run.graph.owner(run.evaluation("base-recipe", name, 0)))
        sides.append({one["item"]: any(one["correct"]) for one in rows if one["task"] == "heldout"})
    gained = [sides[1][item] and not sides[0][item] for item in sides[1]]
    assert found.value[0] == pytest.approx(np.mean(gained))
    assert found.source[0] == run.graph.owner(node).sentinel
    assert json.dumps(found.value.tolist())
