"""Labels agree, are right and are biased as often as their dials say; what they hold of gold is a ranking."""

import random
from typing import Any

import pytest

from encore import worlds
from encore.data import preferences
from encore.errors import UserError
from encore.labels import annotators
from encore.labels.model_judges import ask
from encore.recipe.kinds.label import Labeller
from encore.stages.label import as_demonstrations, as_preferences
from encore.worlds.replies import count_tokens

WORLD = worlds.make({"world": "preferences"})
KINDS = ("good", "plain", "curt", "wordy", "gushing", "repetitive", "rude", "wrong")


def drawn(n: int = 250, size: int = 4) -> list[dict[str, Any]]:
    """Samples: replies of kinds drawn at random."""
    rng = random.Random(0)
    rows = []
    for problem in worlds.sample(WORLD, n, 0, "train"):
        texts = [WORLD.document(problem, rng.choice(KINDS), rng) for _ in range(size)]
        rows.append(
            {
                "prompt": problem.question,
                "question": problem.question,
                "answer": problem.answer,
                "difficulty": problem.difficulty,
                "completions": texts,
                "tokens": [count_tokens(text) + 1 for text in texts],
                "truncated": [False] * size,
            }
        )
    return rows


ROWS = drawn()
GOLD = annotators.rewarded(ROWS, WORLD.rewards["gold"])
JUDGE = annotators.rewarded(ROWS, WORLD.rewards["judge"])


def quality(made: annotators.Labels) -> dict[str, float]:
    return annotators.quality(ROWS, made, GOLD)


def test_annotators_agree_or_are_right_as_often_as_asked():
    agreeing = quality(annotators.annotated(GOLD, Labeller(agreement=0.73), 0))
    assert agreeing["agreement"] == pytest.approx(0.73, abs=0.04)
    right = quality(annotators.annotated(GOLD, Labeller(accuracy=0.75), 0))
    assert right["accuracy"] == pytest.approx(0.75, abs=0.04)
    assert right["longer_preferred"] == pytest.approx(right["gold/longer_preferred"], abs=0.06)
    assert annotators.annotated(GOLD, Labeller(temperature=1.0), 0) == annotators.annotated(
        GOLD, Labeller(temperature=1.0), 0
    )
    assert annotators.annotated(GOLD, Labeller(temperature=1.0), 0) != annotators.annotated(
        GOLD, Labeller(temperature=1.0), 1
    )


def test_errors_of_a_judge_are_structured():
    chance = quality(annotators.ai_judge(GOLD, JUDGE, ROWS, Labeller(accuracy=0.75), 0))
    assert chance["accuracy"] == pytest.approx(0.75, abs=0.04)
    found = annotators.ai_judge(GOLD, JUDGE, ROWS, Labeller(accuracy=0.75, temperature=0.0), 0)
    biased = quality(found)
    assert biased["accuracy"] == pytest.approx(0.75, abs=0.02)
    assert biased["agreement"] > 0.97  # no random errors: another judge makes the same
    assert found.fitted["bias"] > 1
    assert (
        biased["longer_preferred"]
        > quality(annotators.annotated(GOLD, Labeller(accuracy=0.75), 0))["longer_preferred"]
    )
    with pytest.raises(UserError, match=r"labeller.accuracy: 0.01 is out of reach at temperature 0"):
        annotators.ai_judge(GOLD, JUDGE, ROWS, Labeller(accuracy=0.01, temperature=0.0), 0)


def test_both_orders_take_the_liking_for_a_position_away():
    dials = {"accuracy": 0.78, "position_bias": 2.0}
    both = quality(annotators.ai_judge(GOLD, JUDGE, ROWS, Labeller(**dials), 0))
    one = quality(annotators.ai_judge(GOLD, JUDGE, ROWS, Labeller(**dials, both_orders=False), 0))
    assert both["accuracy"] == pytest.approx(0.78, abs=0.04)
    assert one["accuracy"] < both["accuracy"] - 0.02
    assert one["first_preferred"] > both["first_preferred"] + 0.05


def test_scores_hold_ranks_and_not_gold():
    ranks = annotators.by_rank(GOLD)
    for made in (ranks, annotators.annotated(GOLD, Labeller(temperature=1.0), 0).scores):
        assert {score for row in made for score in row} <= {0.0, 1.0, 2.0, 3.0}
    for row, true in zip(ranks, GOLD, strict=True):
        assert preferences.by_score(row) == preferences.by_score(true)
    exact = quality(annotators.Labels(ranks))
    assert exact["accuracy"] == 1.0
    assert "agreement" not in exact


def test_labelled_samples_are_preferences():
    rows, counts = preferences.usable(as_preferences(ROWS, annotators.by_rank(GOLD), 0.2))
    assert counts["nan"] == counts["empty"] == 0
    assert {row["split"] for row in rows} == {"train", "validation"}
    assert len(preferences.pairs(rows)) == quality(annotators.Labels(annotators.by_rank(GOLD)))["pairs"]


def test_the_best_and_the_right_are_demonstrations():
    row = ROWS[0] | {
        "completions": ["a", " ", "cut", "b", "a", "none"],
        "truncated": [False, False, True, False, False, False],
    }
    scores = [[1.0, 9.0, 8.0, 1.0, 1.0, float("nan")]]
    best, skipped = as_demonstrations([row], scores, "best")
    assert [one["completion"] for one in best] == ["a"]
    assert skipped == {"skipped/empty": 1, "skipped/truncated": 1, "skipped/nan": 1}
    right, _ = as_demonstrations([row], scores, "right")
    assert [one["completion"] for one in right] == ["a", "b"]


def test_a_question_about_two_completions():
    text = ask("{prompt}|{first}|{second}|1 or 2?", "{first}", ["x{second}", "y"], 1, 0)
    assert text == "{first}|y|x{second}|1 or 2?"
