"""The key `chat`: with what it goes together, in stages, domains and evaluation tasks."""

import re

import pytest

from encore.errors import UserError
from encore.recipe.kinds import read_stage

SUMS = {"world": "chain"}
MISTAKES = [
    ({"template": "{question}", "chat": True}, "chat: template is given too; remove one of the two"),
    ({"chat": False}, "chat: expected true or a mapping, got false"),
    ({"chat": {"user": "Hello"}}, "chat.user: expected {question} exactly once, got 'Hello'"),
]


@pytest.mark.parametrize(("part", "says"), MISTAKES)
@pytest.mark.parametrize("place", ["stages.grpo", "stages.grpo.domains.a"])
def test_a_mistake_is_one_line(part, says, place):
    own = {"task": SUMS, "rewards": {"format": 1.0}}
    stage = {**own, **part}
    if "domains" in place:
        half = {**own, "share": 0.5}
        stage = {"domains": {"a": half | part, "b": half | {"chat": True}}}
    with pytest.raises(UserError, match=f"^{re.escape(f'{place}.{says} (here)')}$"):
        read_stage({"run": "grpo", "model": {"path": "p"}, **stage}, "stages.grpo", " (here)").check_rules(
            "stages.grpo", " (here)"
        )


def test_chat_takes_the_place_of_a_template(folder):
    before = folder.load()["paper"].layers.content["stages"]["grpo"]
    folder.remove("paper", "stages/grpo/template")
    assert "stages.grpo.template: missing" in folder.mistake()
    folder.set("paper", "stages/grpo/chat", {"system": "s", "prefill": "<think>\n"})
    folder.remove("paper", "evals/tasks/heldout/template")
    assert "heldout.template: missing" in folder.mistake()
    folder.set("paper", "evals/tasks/heldout/chat", True)
    assert folder.load()["paper"].layers.content["stages"]["grpo"].keys() - before.keys() == {"chat"}


def test_an_arm_may_go_from_a_template_to_chat(folder):
    folder.set("paper", "arms/hot/stages/grpo/chat", True)
    assert "template is given too" in folder.mistake()
    folder.set("paper", "arms/hot/stages/grpo/template", None)
    assert folder.load()


def test_trls_own_key_is_refused(folder):
    folder.set("paper", "stages/grpo/args/chat_template_kwargs", {"thinking": True})
    assert "args.chat_template_kwargs: set by the stage itself" in folder.mistake()
