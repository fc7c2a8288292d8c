"""The protocol of an environment in the world `environment`: sessions that play episodes, one by one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from encore.errors import UserError

Schema = Mapping[str, Any]  # the JSON schema of a tool, as chat templates take it
Arguments = Mapping[str, Any]  # the arguments of a call, or of an environment, by their names
CALL = ("<tool_call>", "</tool_call>")  # the tags of a call, as in the chat templates of Hermes and Qwen
EXPECTED = 'expected {"name": a tool, "arguments": {…}} as JSON'


class Refused(UserError):
    """An error for a call that the environment refuses; the policy reads the reason, and goes on."""


@dataclass(frozen=True)
class Observed:
    """An observation, after a call or at the beginning of an episode."""

    text: str
    good: bool = True  # whether the call was well formed, and the environment took it
    reward: float | None = None  # the call's own reward; None if the environment rewards whole episodes
    # the environment's state, for the log; None if it shows none; not compared, because it may hold a time
    state: str | None = field(default=None, compare=False)
    over: bool = False  # whether the episode is over, so that no further call acts

    def compared(self) -> list[str]:
        """Return the compared fields as words."""
        return [
            f"observation {self.text}",
            f"well formed {self.good}",
            f"reward {self.reward}",
            f"over {self.over}",
        ]


class Session(Protocol):
    """An instance of an environment, or a connection to one, which plays one episode at a time."""

    @property
    def reward_of_call(self) -> float | None:
        """The reward of the last call; None if the environment rewards whole episodes."""

    @property
    def state(self) -> str | None:
        """The state, for the log; None if the environment shows none."""

    @property
    def over(self) -> bool:
        """Whether the episode is over."""

    def reset(self, number: int) -> str:
        """Begin the episode of a number, and return the first observation."""
        ...

    def call(self, name: str, arguments: Arguments) -> str:
        """Call a tool, and return the observation. Raises Refused if the environment refuses the call."""
        ...

    def reward(self, completion: str) -> float:
        """Return the reward of the episode, which a completion, the policy's own text, has played."""
        ...


class Source(Protocol):
    """An environment: its tools, and new sessions of it."""

    @property
    def episodes(self) -> int | None:
        """The number of different episodes, whose numbers begin at 0; None if there is no end of them."""

    def tools(self) -> list[Schema]:
        """Return the JSON schemas of the tools, as chat templates take them."""
        ...

    def session(self) -> Session:
        """Return a new session."""
        ...


def schema(name: str, about: str, parameters: Schema) -> Schema:
    """Return the JSON schema of a tool from the schema of its parameters."""
    function = {"name": name, "description": about, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


def parsed(call: str) -> tuple[str, Arguments, str]:
    """Return the name and the arguments of a call, and what is wrong with it, "" if nothing is."""
    try:
        read = json.loads(call)
    except (ValueError, RecursionError):
        return "", {}, EXPECTED
    arguments = read.get("arguments", {}) if isinstance(read, dict) else None
    if not isinstance(arguments, dict) or not isinstance(read.get("name"), str):
        return "", {}, EXPECTED
    return read["name"], arguments, ""
