"""Mistakes in a `reward_model` stage, told before any job starts."""

import re
from typing import Any

import pytest

from recipes.errors import UserError
from recipes.runtime.environment import names_hub
from recipes.spec.checks import reward_model

CORPUS = {"documents": 8, "mixture": {"direct": 1.0}}
SHOWN = {"task": {"world": "sort"}, "template": "<user>{question}<assistant>", "corpus": CORPUS}
STAGE: dict[str, Any] = {
    "needs": {"data": "label"},
    "args": {},
    "comparisons": "grouped",
    "demonstrations": SHOWN,
}
LABELS: dict[str, Any] = {"needs": {"data": "samples"}, "args": {}, "labels": "steps"}
HUB = {"hub": "org/name", "revision": "0" * 40, "split": "train", "prompt": "p"}


def test_what_is_right_passes():
    reward_model.check(STAGE)
    other = {"data": "label", "demonstrations": "other"}
    reward_model.check({"needs": other, "args": {}, "comparisons": "shuffled"})
    reward_model.check(LABELS)
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


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        (LABELS | {"comparisons": "grouped"}, "labels, comparisons: expected one of the two"),
        ({"needs": {"data": "samples"}, "args": {}}, "labels, comparisons: expected one of the two"),
        (LABELS | {"members": 3}, "members: a reward model with labels has none"),
        (LABELS | {"needs": {"data": "s", "demonstrations": "d"}}, "demonstrations: a reward model with"),
    ],
)
def test_labels_and_comparisons(stage, says):
    with pytest.raises(UserError, match=re.escape(says)):
        reward_model.check(stage)


def test_a_hub_name_anywhere_needs_the_network():
    assert names_hub({"demonstrations": {"task": HUB}})
    assert names_hub({"tasks": [{"model": HUB}]})
    assert not names_hub(STAGE)
