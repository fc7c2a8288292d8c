"""The funnel of rejection sampling, against a filter that looks at one completion at a time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encore.sampling import funnel
from encore.sampling.completion import Completion

SIZE = 4
THRESHOLDS = {"readability": 0.8, "language_consistency": 1.0}
shares = st.sampled_from([0.0, 0.5, 0.8, 1.0])
sampled = st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans(), shares, shares)
groups = st.lists(st.lists(sampled, min_size=SIZE, max_size=SIZE), min_size=1, max_size=5)
thresholds = st.fixed_dictionaries({}, optional={name: st.just(least) for name, least in THRESHOLDS.items()})


def passed(problems, asked, most):
    """The funnel of (text, right, truncated, language_consistency, readability), a list for each problem."""
    flat = [one for problem in problems for one in problem]
    completions = [Completion(text, tokens=3, truncated=cut) for text, _, cut, _, _ in flat]
    scores = {
        "accuracy": [float(right) for _, right, *_ in flat],
        "language_consistency": [one[3] for one in flat],
        "readability": [one[4] for one in flat],
    }
    return funnel.passed(completions, scores, asked, SIZE, most)


@given(groups, thresholds, st.none() | st.integers(1, SIZE))
def test_what_is_kept(problems, asked, most):
    expected = []
    for problem in problems:
        good = [
            text
            for text, right, cut, *of_language in problem
            if right
            and not cut
            and of_language[0] >= asked.get("language_consistency", 0)
            and of_language[1] >= asked.get("readability", 0)
        ]
        expected.append(list(dict.fromkeys(good))[:most])  # distinct, in the order sampled
    kept = passed(problems, asked, most)["kept"]
    texts = [one[0] for problem in problems for one in problem]
    assert kept == sorted(kept)
    assert [[texts[i] for i in kept if i // SIZE == n] for n in range(len(problems))] == expected


@given(groups, thresholds, st.none() | st.integers(1, SIZE))
def test_each_step_passes_a_part_of_what_the_step_before_did(problems, asked, most):
    found = passed(problems, asked, most)
    assert (*found,) == funnel.steps(asked)
    left = [set(passing) for passing in found.values()]
    assert all(after <= before for before, after in pairwise(left))
    assert len(left[0]) == SIZE * len(problems)
    counted = funnel.metrics(found, SIZE)
    assert counted.keys() == {f"funnel/{name}{end}" for name in found for end in ("", "/problems")}
    fallen = [len(before - after) for before, after in pairwise(left)]
    assert counted["funnel/sampled"] - sum(fallen) == counted["funnel/kept"]
    for name, passing in found.items():
        assert counted[f"funnel/{name}"] == len(passing)
        having = [any(i // SIZE == number for i in passing) for number in range(len(problems))]
        assert counted[f"funnel/{name}/problems"] == sum(having) / len(having)
    assert counted["funnel/distinct/problems"] == counted["funnel/kept/problems"]  # `most` empties no prompt


def test_the_numbers_of_a_funnel():
    good, wrong, mixed = ("a", True, False, 1, 1), ("a", False, False, 1, 1), ("b", True, False, 0.5, 1)
    unreadable, cut, other = ("b", True, False, 1, 0.5), ("c", True, True, 1, 1), ("c", True, False, 1, 0.8)
    problems = [[good, good, unreadable, cut], [wrong, mixed, other, cut]]
    numbers = funnel.metrics(passed(problems, THRESHOLDS, 1), SIZE)
    counts = {name: number for name, number in numbers.items() if not name.endswith("/problems")}
    assert counts == {
        "funnel/sampled": 8,
        "funnel/ended": 6,
        "funnel/right": 5,
        "funnel/language_consistency": 4,
        "funnel/readability": 3,
        "funnel/distinct": 2,
        "funnel/kept": 2,
    }
    numbers = funnel.metrics(passed([problems[0], problems[1][:1] * SIZE], {}, None), SIZE)
    assert numbers["funnel/ended/problems"] == 1.0
    assert numbers["funnel/right/problems"] == numbers["funnel/kept/problems"] == 0.5


def test_rounding_decides_nothing():
    problem = [("a", True, False, 0.1 * 3, 1), ("b", True, False, 0.3 - 1e-6, 1)] * 2
    assert 1 - 0.9 < 0.1  # such a score is what it should be
    assert passed([problem], {"language_consistency": 0.3}, None)["kept"] == [0]
    problem = [("a", True, False, 1 - 0.9, 1)] * SIZE
    assert passed([problem], {"language_consistency": 0.1}, None)["kept"] == [0]


GOOD = ("a", True, False, 1.0, 1.0)


@pytest.mark.parametrize(
    ("spoiled", "says"),
    [
        (
            ("a", True, True, 1.0, 1.0),
            "0 of 8 completions kept: 0 ended within the cap; a larger max_completion_length would help",
        ),
        (
            ("a", False, False, 1.0, 1.0),
            "0 of 8 completions kept: 8 ended within the cap, of them 0 right; more num_generations, easier "
            "problems or a better policy would help",
        ),
        (
            ("a", True, False, 0.5, 1.0),
            "0 of 8 completions kept: 8 ended within the cap, of them 8 right, of them 0 with "
            "language_consistency >= 1; a lower keep.language_consistency, more num_generations or a better "
            "policy would help",
        ),
        (
            ("a", True, False, 1.0, 0.5),
            "0 of 8 completions kept: 8 ended within the cap, of them 8 right, of them 8 with "
            "language_consistency >= 1, of them 0 with readability >= 0.8; a lower keep.readability, more "
            "num_generations or a better policy would help",
        ),
    ],
)
def test_an_empty_funnel_says_where_it_ran_dry(spoiled, says):
    found = passed([[spoiled] * SIZE] * 2, THRESHOLDS, None)
    assert not found["kept"]
    assert funnel.emptied(found, THRESHOLDS) == says
