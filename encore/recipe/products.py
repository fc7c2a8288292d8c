"""What a stage makes and what can play its roles: a model, a reward model, or data of one kind."""

from collections.abc import Mapping
from typing import Any

from encore.recipe.kinds import KINDS

# Role -> what a stage must make to play it, unless the kind of the stage that needs it says otherwise.
PLAYED_BY = {
    "demonstrations": "demonstrations",
    "reward_model": "a reward model",
    "proxy": "a reward model",
}


def made(stage: Mapping[str, Any]) -> str:
    """What a stage makes: "a model", "a reward model", "samples", "preferences", …"""
    if stage["run"] == "label":
        return "preferences" if stage.get("keep", "preferences") == "preferences" else "demonstrations"
    return KINDS[stage["run"]].product


def played_by(role: str, run: str | None = None) -> str:
    """What can play `role` in a stage of kind `run` or in an evaluation, such as "samples or preferences"."""
    takes = KINDS[run].takes if run else {}
    return takes.get(role, PLAYED_BY.get(role, "a model"))
