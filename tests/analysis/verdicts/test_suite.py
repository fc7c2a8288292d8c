"""How many of all shown claims are expected to be false."""

from dataclasses import replace

import pytest
from judged_claims import judge

from analysis.verdicts.rule import alpha_of
from analysis.verdicts.suite import expected

CLEAR = judge([0.8, 0.81, 0.79, 0.82, 0.8, 0.78, 0.8, 0.81])
PRIMARY = replace(CLEAR, family="primary")


def test_a_family_of_primary_claims_counts_once_and_each_secondary_claim_by_itself():
    alpha = alpha_of(1)
    both = expected([[PRIMARY, PRIMARY, CLEAR, CLEAR], [PRIMARY]])
    assert both.shown == 5
    assert both.false == pytest.approx(4 * alpha)
    assert both.any_false == pytest.approx(1 - (1 - alpha) ** 4)
    assert str(both).startswith("Of the 5 claims that are shown here, at most 0.2 are expected to be false")


def test_what_is_not_shown_cannot_be_shown_wrongly():
    for word in ("open", "reversed", "equivalent", "not tested"):
        assert expected([[replace(PRIMARY, word=word), replace(CLEAR, word=word)]]).false == 0
    assert expected([]).any_false == 0


def test_another_attempt_has_its_own_alpha():
    assert expected([[replace(CLEAR, attempt=2)]]).false == pytest.approx(alpha_of(2))
