"""The forest as rows of the page."""

from dataclasses import replace

import pytest
from judged_claims import judge

from analysis.verdicts import claims, claims_table, strips
from analysis.verdicts.decision import judge_run


def test_zero_is_where_it_is_in_all_rows_and_what_is_claimed_lies_right_of_it(run, numbers):
    more = judge([0.5, 0.52, 0.48, 0.51] * 2)
    less = replace(
        more,
        direction="lower",
        estimate=-more.estimate,
        low=-more.high,
        high=-more.low,
        differences=tuple(-d for d in more.differences),
    )
    strip = strips.strip(more)
    assert strips.strip(less) == strip
    assert strip.holds == (strip.margins[0], strips.Strip.WIDE)
    low, high = strip.interval
    assert strips.Strip.ZERO <= strip.margins[0] < low < strip.estimate < high < strips.Strip.WIDE
    assert max(strip.seeds) <= strips.Strip.WIDE - strips.ROOM + 1e-9
    against = strips.strip(replace(more, direction="lower"))
    assert min(against.seeds) >= strips.ROOM - 1e-9
    assert against.interval[1] < strips.Strip.ZERO


def test_equality_holds_on_both_sides_and_an_end_without_bound_goes_to_the_edge():
    verdict = replace(judge([0.01, -0.01] * 4), direction="equal", margin=0.05, low=-0.02, high=float("inf"))
    strip = strips.strip(verdict)
    left, right = strip.margins
    assert strip.holds == (left, right)
    assert (left + right) / 2 == pytest.approx(strips.Strip.ZERO)
    assert strip.interval[1] == strips.Strip.WIDE


def test_without_differences_there_is_no_strip_and_without_an_interval_no_bar():
    verdict = judge([0.5] * 8)
    assert strips.strip(replace(verdict, n=0)) is None
    assert strips.strip(replace(verdict, low=float("nan"), high=float("nan"))).interval is None
    nothing = replace(verdict, differences=(0.0,) * 8, estimate=0.0, low=0.0, high=0.0, margin=0.0)
    assert strips.strip(replace(nothing, smallest_effect=0.0)).estimate == strips.Strip.ZERO


def test_primary_claims_come_first_and_sanity_checks_apart(run, numbers):
    verdicts, stated = judge_run(run, numbers)[-1], dict(run.document.claims)
    check, finding, *others = verdicts
    stated[check.id] = stated[check.id].model_copy(update={"kind": "sanity"})
    finding = replace(finding, family="primary")
    check = replace(check, family="primary")
    groups = strips.grouped([check, *others, finding], stated)
    assert list(groups.items()) == list(zip(strips.GROUPS, ([finding], others, [check]), strict=True))
    assert list(strips.grouped(others, stated)) == [strips.GROUPS[1]]


def test_every_word_has_a_meaning():
    assert set(claims_table.MEANINGS) == set(claims.VERDICTS)
