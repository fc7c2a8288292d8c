"""Where the demonstrations of a stage `sft` come from; a source that says too little or too much."""

import re
from typing import Any

import pytest

from encore.errors import UserError
from encore.recipe.kinds import read_stage
from encore.recipe.layers import check_layers

TEMPLATE = "<user>{question}<assistant>"
GOOD = {"mixture": {"good": 1.0}}
COUNTED: dict[str, Any] = {
    "task": {"world": "preferences"},
    "template": TEMPLATE,
    "corpus": GOOD | {"documents": 200},
}
SHARED = COUNTED | {"corpus": GOOD, "share": 0.25}
HUB: dict[str, Any] = {
    "hub": "org/name",
    "revision": "0" * 40,
    "split": "train",
    "prompt": "p",
    "completion": "c",
}
DATA = {"needs": {"policy": "base", "data": "draw"}}
READABLE = {"documents": 500, "mixture": {"readable": 1.0}}
COLD: dict[str, Any] = {  # a cold start of DeepSeek-R1
    "needs": {"policy": "base"},
    "task": {"world": "bilingual"},
    "template": TEMPLATE,
    "corpus": READABLE,
}


def check(stage):
    begun = {} if "policy" in stage["needs"] else {"model": {"path": "p"}}
    read_stage({"run": "sft", **begun, **stage}).check_rules()


@pytest.mark.parametrize(
    "stage",
    [
        DATA,
        DATA | {"problems": 600},
        COLD,
        {"needs": {"policy": "base"}, "task": HUB, "problems": 9},
        DATA | {"also": {"general": COUNTED}},
        DATA | {"also": {"general": SHARED, "more": COUNTED, "all_of_it": {"task": HUB}}},
        DATA | {"also": {"some": {"task": HUB, "problems": 9}, "many": {"task": HUB, "share": 0.5}}},
        COLD | {"also": {"general": SHARED}},
    ],
)
def test_sources_that_say_how_much_they_give(stage):
    check_layers(layered(stage))
    check(stage)


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ({"needs": {}}, "needs.data: missing; or give the task"),
        (DATA | COUNTED, "task: needs.data has the demonstrations; remove one of the two"),
        (COLD | {"problems": 5}, "problems: of a Hub dataset; a world writes corpus.documents"),
        (COLD | {"corpus": GOOD}, "corpus.documents: missing"),
        (COLD | {"corpus": {"documents": 5}}, "corpus.mixture: missing"),
        (DATA | {"also": {"general": {}}}, "also.general.task: missing"),
        (DATA | {"also": {"data": COUNTED}}, "also.data: a reserved name"),
        (DATA | {"also": {"task": COUNTED}}, "also.task: a reserved name"),
        (DATA | {"also": {"general": COUNTED | {"share": 0.5}}}, "also.general.corpus.documents: share says"),
        (DATA | {"also": {"general": COUNTED | {"problems": 5}}}, "also.general.problems: of a Hub dataset"),
        (DATA | {"also": {"general": SHARED | {"problems": 5}}}, "also.general.problems: of a Hub dataset"),
        (DATA | {"also": {"g": {"task": HUB, "problems": 5, "share": 0.5}}}, "also.g.problems: share says"),
        (
            DATA | {"also": {"g": {"task": HUB, "corpus": GOOD}}},
            "also.g.corpus: a corpus is written by a",
        ),
        (DATA | {"also": {"general": COUNTED | {"corpus": GOOD}}}, "also.general.corpus.documents: missing"),
        (DATA | {"also": {"g": {"task": {"world": "preferences"}}}}, "also.g.template: missing"),
        (
            DATA | {"also": {"general": COUNTED | {"task": {"world": "preference"}}}},
            'also.general.task.world: no world "preference"; did you mean "preferences"?',
        ),
        (
            DATA | {"also": {"general": SHARED | {"corpus": {"mixture": {"god": 1}}}}},
            'also.general.corpus.mixture.god: world "preferences" has no kind "god"; did you mean "good"?',
        ),
        (DATA | {"also": {"general": COUNTED | {"template": "x"}}}, "also.general.template: expected"),
        (DATA | {"chat": {"system": "s"}}, "chat: the prompts of needs.data are complete; write chat: true"),
        (COLD | {"chat": True}, "chat: a world writes its demonstrations by a template"),
        (
            DATA | {"also": {"talk": {"task": HUB, "chat": {"prefill": "a"}}}},
            "also.talk.chat.prefill: a demonstration has the whole reply; remove it",
        ),
        (
            DATA | {"also": {"talk": {"task": HUB, "chat": True, "template": "{question}"}}},
            "also.talk.chat: template is given too; remove one of the two",
        ),
        (DATA | {"also": {"a": SHARED, "b": SHARED | {"share": 0.75}}}, "also: expected shares that add up "),
        (
            DATA | {"also": {"general": {"task": {**HUB, "completions": "c"}}}},
            'also.general.task.completions: unknown key; did you mean "completion"?',
        ),
    ],
)
def test_a_mistake_is_one_line(stage, says):
    with pytest.raises(UserError, match=f"^{re.escape(says)}"):
        check(stage)


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ({"also": {"general": SHARED | {"share": 1.0}}}, "share: expected less than 1, got 1.0"),
        ({"also": {"general": SHARED | {"share": 0}}}, "share: expected more than 0, got 0"),
        ({"also": {"general": SHARED | {"shar": 0.5}}}, 'shar: unknown key; did you mean "share"?'),
        ({"also": {"General": SHARED}}, "lower-case"),
    ],
)
def test_what_a_schema_shows(stage, says):
    with pytest.raises(UserError, match=re.escape(says)):
        check_layers(layered(stage))


def layered(stage: dict[str, Any]) -> dict[str, Any]:
    return {"stages": {"sft": {"run": "sft", **stage}}, "scales": {}, "arms": {}}
