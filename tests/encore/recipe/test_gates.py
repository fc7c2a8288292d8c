"""Gates: what a claim needs, read from its text and held to a number."""

import math

import pytest

from encore.errors import UserError
from encore.recipe.gates import Need, met, needs, parse


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("clip_cuts >= 0.02", Need("clip_cuts", ">=", 0.02)),
        ("ratio_left_1 >= 1.0e-6", Need("ratio_left_1", ">=", 1e-6)),
        ("drift <= -3", Need("drift", "<=", -3.0)),
        ("achieved_kl within 20%", Need("achieved_kl", "within", 0.2)),
        ("  achieved_kl   within 2.5% ", Need("achieved_kl", "within", 0.025)),
    ],
)
def test_read(text, need):
    assert parse(text) == need


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ratio", 'expected GATE >= NUMBER, GATE <= NUMBER or GATE within P%, got "ratio"'),
        ("clip_cuts>=0.02", "expected GATE >= NUMBER"),
        ("clip_cuts > 0.02", 'unknown relation ">" in "clip_cuts > 0.02"; did you mean ">="?'),
        ("kl withn 20%", 'unknown relation "withn" in "kl withn 20%"; did you mean "within"?'),
        ("clip_cuts >= 2%", 'expected a number after >=, got "2%" in "clip_cuts >= 2%"'),
        ("clip_cuts >= nan", 'expected a number after >=, got "nan"'),
        ("clip_cuts >= 1_0", 'expected a number after >=, got "1_0"'),
        ("kl within 20", 'expected a percentage such as 20% after within, got "20" in "kl within 20"'),
        ("kl within 0%", 'expected more than 0% after within, got "0%"'),
        ("kl within -5%", 'expected more than 0% after within, got "-5%"'),
    ],
)
def test_mistake(text, message):
    with pytest.raises(UserError) as error:
        parse(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "text", "target", "answer"),
    [
        (0.02, "g >= 0.02", None, True),
        (0.0199, "g >= 0.02", None, False),
        (0.02, "g <= 0.02", None, True),
        (0.0201, "g <= 0.02", None, False),
        (4.9, "g within 20%", 6.0, True),
        (7.1, "g within 20%", 6.0, True),
        (4.7, "g within 20%", 6.0, False),
        (7.3, "g within 20%", 6.0, False),
        (-7.1, "g within 20%", -6.0, True),
        (-4.7, "g within 20%", -6.0, False),
        (100.0, "g >= 0.02", 6.0, True),  # a target plays no part
    ],
)
def test_met(value, text, target, answer):
    assert met(value, parse(text), target) is answer


@pytest.mark.parametrize("text", ["g >= -1.0e+9", "g <= 1.0e+9", "g within 99999%"])
def test_nan_never_meets_anything(text):
    assert not met(math.nan, parse(text), 1.0)


def test_nothing_is_within_a_share_of_no_target():
    with pytest.raises(UserError, match=r"gates\.g\.target: missing; what is it to be within 2\.5% of"):
        met(1.0, parse("g within 2.5%"), None)


def test_a_claim_needs_nothing_one_thing_or_several():
    one, other = Need("a", ">=", 1.0), Need("b", "<=", 2.0)
    assert needs({}) == []
    assert needs({"needs": "a >= 1"}) == [one]
    assert needs({"needs": ["a >= 1", "b <= 2"]}) == [one, other]
