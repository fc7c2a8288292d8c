"""Gates: what a claim needs, read from its text and held to a number."""

import math
from typing import Any

import pytest

from encore.errors import UserError
from encore.recipe.claims import Claim, Gate, Need


def gate(target: float | None) -> Gate:
    """A gate with this target."""
    given = {} if target is None else {"target": target}
    return Gate.model_validate({"metric": "heldout/kl", "of": "a/after", **given})


def claim(**keys: Any) -> Claim:
    """A claim with these keys."""
    test = {"metric": "heldout/kl", "of": "a/after", "direction": "equal", "margin": 0.1}
    return Claim.model_validate(
        {"says": "It holds.", "source": "Fig. 1", "paper": "ours", "test": test, **keys}
    )


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
    assert Need.parse(text) == need


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
        Need.parse(text)
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
    assert gate(target).met(Need.parse(text), value) is answer


@pytest.mark.parametrize("text", ["g >= -1.0e+9", "g <= 1.0e+9", "g within 99999%"])
def test_nan_never_meets_anything(text):
    assert not gate(1.0).met(Need.parse(text), math.nan)


def test_nothing_is_within_a_share_of_no_target():
    with pytest.raises(UserError, match=r"gates\.g\.target: missing; the gate must be within 2\.5% of it"):
        gate(None).met(Need.parse("g within 2.5%"), 1.0)


def test_a_claim_needs_nothing_one_thing_or_several():
    one, other = Need("a", ">=", 1.0), Need("b", "<=", 2.0)
    assert claim().needs == ()
    assert claim(needs="a >= 1").needs == (one,)
    assert claim(needs=["a >= 1", "b <= 2"]).needs == (one, other)
