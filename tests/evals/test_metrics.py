"""The metrics of rows counted by hand."""

import pytest

from evals.metrics import summary

ROWS = [
    {
        "difficulty": 3,
        "correct": [True, True, False, False],
        "tokens": [10, 20, 30, 40],
        "truncated": [False, False, False, True],
        "formatted": [True, True, True, False],
        "votes": ["5", "5", "6", None],
    },
    {
        "difficulty": 4,
        "correct": [False, False, False, False],
        "tokens": [4, 4, 4, 4],
        "truncated": [False, False, False, False],
        "formatted": [False, False, False, False],
        "votes": ["7", "8", None, None],
    },
]


def test_every_metric_of_the_contract():
    result = summary(ROWS, (1, 2, 4))
    values = {name: metric["value"] for name, metric in result["metrics"].items()}
    assert values == pytest.approx(
        {
            "accuracy": 0.25,
            "pass@1": 0.25,
            "pass@2": (5 / 6) / 2,  # 1 - C(2,2) / C(4,2) for the first item
            "pass@4": 0.5,
            "maj@1": 0.25,
            # of the 6 pairs of the first item: {5,5} and two {5,None} win, two {5,6} are tied, {6,None} loses
            "maj@2": (1 + 2 + 2 * 0.5) / 6 / 2,
            "maj@4": 0.5,
            "format_rate": 3 / 8,
            "truncation_rate": 1 / 8,
            "length": 116 / 8,
            "length_correct": 15.0,
            "length_incorrect": (30 + 40 + 16) / 6,
            "distinct_answers": 2.0,
            "accuracy/difficulty=3": 0.5,
            "accuracy/difficulty=4": 0.0,
            "length/difficulty=3": 25.0,
            "length/difficulty=4": 4.0,
        }
    )
    assert (result["items"], result["samples"]) == (2, 4)
    assert result["variance"]["items"] + result["variance"]["sampling"] == pytest.approx(0.125 / 2)
    for metric in result["metrics"].values():
        assert metric["low"] <= metric["value"] <= metric["high"]


def test_a_metric_over_nothing_is_none():
    metrics = summary(ROWS[1:], (1,))["metrics"]
    assert metrics["length_correct"] == {"value": None, "low": None, "high": None}


def test_without_difficulty():
    rows = [{**row, "difficulty": None} for row in ROWS]
    assert not [name for name in summary(rows, (1,))["metrics"] if "difficulty" in name]


def test_what_a_task_scores_beside_the_answer():
    scored = [
        {"gold": [1.0, 2.0, 3.0, 4.0], "proxy": [4.0, 3.0, 2.0, 1.0], "logratio": [0.0, 1.0, 2.0, 3.0]},
        {"gold": [0.0, 0.0, -1.0, 1.0], "proxy": [5.0, 5.0, 5.0, 9.0], "logratio": [-2.0, 0.0, 0.0, 0.0]},
    ]
    rivals = [{"reference_gold": 2.0}, {"reference_gold": 0.0}]
    rows = [row | more | rival for row, more, rival in zip(ROWS, scored, rivals, strict=True)]
    plain, found = summary(ROWS, (1, 2, 4))["metrics"], summary(rows, (1, 2, 4))["metrics"]
    assert {name: metric["value"] for name, metric in found.items() if name not in plain} == pytest.approx(
        {
            "gold": 10 / 8,
            "win_rate": (2.5 / 4 + 2 / 4) / 2,  # ties: one in the first item, two in the second
            "proxy": 34 / 8,
            "kl": 4 / 8,
            "gold/bon@1": 10 / 8,
            # of the 6 pairs of the first item, best by proxy: 1 1 1 2 2 3; of the second: 0 -1/2 -1/2 1 1 1
            "gold/bon@2": (10 / 6 + 2 / 6) / 2,
            "gold/bon@4": (1 + 1) / 2,
            "proxy/bon@1": 34 / 8,
            "proxy/bon@2": ((4 + 4 + 4 + 3 + 3 + 2) / 6 + (5 + 5 + 5 + 9 + 9 + 9) / 6) / 2,
            "proxy/bon@4": (4 + 9) / 2,
        }
    )
    only_proxy = [{key: value for key, value in row.items() if key != "gold"} for row in rows]
    assert not [name for name in summary(only_proxy, (1,))["metrics"] if "gold" in name or "win" in name]


def test_measures_of_a_world_are_means_with_intervals():
    scored = [{"readability": [1.0, 0.5, 0.0, 0.0]}, {"readability": [1.0, 1.0, 0.0, 0.5]}]
    rows = [row | more for row, more in zip(ROWS, scored, strict=True)]
    plain, found = summary(ROWS, (1,))["metrics"], summary(rows, (1,))["metrics"]
    assert found.keys() - plain.keys() == {"readability"}
    assert found["readability"] == pytest.approx({"value": 0.5, "low": 0.375, "high": 0.625})


def test_what_says_nothing_of_a_sample_is_a_mean_over_the_others():
    """Sound checks: of answers that verify. 4 of 8 do, whose shares add up to 2.5."""
    scored = [
        {"sound_checks": [1.0, 0.5, 0.0, 0.0], "verification": [1.0, 1.0, 0.0, 0.0]},
        {"sound_checks": [1.0, 0.0, 0.0, 0.0], "verification": [1.0, 1.0, 0.0, 0.0]},
    ]
    rows = [row | more for row, more in zip(ROWS, scored, strict=True)]
    metrics = summary(rows, (1,))["metrics"]
    assert metrics["sound_checks"]["value"] == pytest.approx(2.5 / 4)
    assert (metrics["sound_checks"]["low"], metrics["sound_checks"]["high"]) == pytest.approx((0.5, 0.75))
    assert metrics["verification"]["value"] == pytest.approx(4 / 8)
    none = [row | {"verification": [0.0] * 4} for row in rows]
    assert summary(none, (1,))["metrics"]["sound_checks"] == {"value": None, "low": None, "high": None}


def test_calls_of_a_tool():
    called = [{"calls": [2, 0, 1, 0], "malformed": [1, 0, 0, 0]}, {"calls": [0] * 4, "malformed": [0] * 4}]
    metrics = summary([row | more for row, more in zip(ROWS, called, strict=True)], (1,))["metrics"]
    values = [metrics[name]["value"] for name in ("calls", "called", "malformed")]
    assert values == pytest.approx([3 / 8, 2 / 8, 1 / 3])
    never = summary([row | called[1] for row in ROWS], (1,))["metrics"]
    assert never["malformed"]["value"] is None


def test_what_shows_in_right_and_in_wrong_samples():
    shown = [{"unrepaired": [0.0, 1.0, 1.0, 1.0]}, {"unrepaired": [1.0, 1.0, 0.0, 1.0]}]
    metrics = summary([row | more for row, more in zip(ROWS, shown, strict=True)], (1,))["metrics"]
    values = [metrics[name]["value"] for name in ("unrepaired", "unrepaired_correct", "unrepaired_incorrect")]
    assert values == pytest.approx([6 / 8, 1 / 2, 5 / 6])


def test_nothing_is_right_or_wrong_where_nothing_verifies():
    rows = [
        {**row, "correct": [None] * 4, "votes": [None] * 4, "proxy": [1.0, 2.0, 3.0, 4.0]} for row in ROWS
    ]
    result = summary(rows, (1, 4))
    assert "variance" not in result
    assert (result["items"], result["samples"]) == (2, 4)
    assert result["metrics"].keys() == {
        *("format_rate", "truncation_rate", "length", "length/difficulty=3", "length/difficulty=4"),
        *("proxy", "proxy/bon@1", "proxy/bon@4"),
    }
    assert result["metrics"]["length"]["value"] == 116 / 8
    assert result["metrics"]["proxy/bon@4"]["value"] == 4.0
