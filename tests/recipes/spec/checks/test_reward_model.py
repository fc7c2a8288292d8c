"""Mistakes in a `reward_model` stage, told before any job starts."""

import re
from typing import Any

import pytest

from recipes.errors import UserError
from recipes.runtime.environment import names_hub
from recipes.spec.checks import reward_model

CORPUS = {"documents": 8, "mixture": {"direct": 1.0}}
SHOWN = {"task": {"world": "sort"}, "template": "<user>{question}<assistant>", "corpus": CORPUS}
STAGE: dict[str, Any] = {"needs": {"data": "label"}, "args": {}, "demonstrations": SHOWN}
HUB = {"hub": "org/name", "revision": "0" * 40, "split": "train", "prompt": "p"}


def test_what_is_right_passes():
    reward_model.check(STAGE)
    reward_model.check({"needs": {"data": "label", "demonstrations": "other"}, "args": {}})
    reward_model.check(STAGE | {"demonstrations": {"task": HUB | {"completion": "c"}}})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"needs": {"demonstrations": "other"}}, "demonstrations: needs.demonstrations has them"),
        ({"args": {"pad_token": "x"}}, "are those of the policy; remove them"),
        ({"demonstrations": {"task": {"world": "sort"}}}, "demonstrations.template: missing"),
        ({"demonstrations": SHOWN | {"task": {"world": "sorts"}}}, 'did you mean "sort"?'),
        ({"demonstrations": SHOWN | {"corpus": {"documents": 8}}}, "demonstrations.corpus.mixture: missing"),
        ({"demonstrations": {"task": HUB}}, "demonstrations.task: completion: missing"),
    ],
)
def test_mistakes(change, says):
    with pytest.raises(UserError, match=re.escape(says)):
        reward_model.check(STAGE | change)


def test_a_hub_name_anywhere_needs_the_network():
    assert names_hub({"demonstrations": {"task": HUB}})
    assert names_hub({"tasks": [{"model": HUB}]})
    assert not names_hub(STAGE)
