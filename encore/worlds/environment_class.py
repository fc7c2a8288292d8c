"""Environments that are classes of a user, as TRL's `environment_factory` takes them.

    class Guess:
        def reset(self, seed: int) -> str: ...       # begins an episode, and returns what is observed first
        def guess(self, number: int) -> str: ...     # a tool: any public method, with Google-style `Args:`
        def get_reward(self) -> float: ...           # the episode's reward; or an attribute `reward`

`reset` gets the episode's number as each of its arguments `seed`, `task_index` and `index`. A ValueError of a
tool is an answer that the policy reads, as in TRL; any other error ends the job. What Encore reads
besides, if the class has it: the attributes `done` or `finished`, `rewards` with a reward for each call, and
`state`. The specifications of TRL, `OpenRewardSpec` and `HarborSpec`, may be named in place of a class.
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from encore import own_code
from encore.errors import UserError, first_line, nearest
from encore.worlds.environment_session import Arguments, Refused, Schema, Session

NOT_TOOLS = ("reset", "get_reward")  # public methods of an environment that are not tools, as in TRL
NUMBERS = ("seed", "task_index", "index")  # arguments of `reset` that get the episode's number
SHOWN = 2_000  # characters of a state that are logged


class OfClass:
    """The environments that a user's class makes, or another function, or TRL's specification of a library.

    A specification has the attributes `environment_factory` and `train_dataset`, whose rows are the episodes.
    """

    def __init__(self, name: str, arguments: Arguments, seconds: float):
        self.name, self.arguments, self.seconds = name, arguments, seconds
        self.make = own_code.load(name)
        self.rows: Any = None
        if hasattr(type(self.make), "environment_factory"):
            spec = self.make
            bounded = own_code.bounded(f"environment {name}", getattr, seconds)
            self.rows, self.make = bounded(spec, "train_dataset"), bounded(spec, "environment_factory")
        check_arguments(self.make, name, arguments)
        instance = self._instance()
        self.spare = [instance]  # the first session has it, for an instance may take long to make
        self._tools = [_schema(name, method) for method in _methods(instance).values()]
        self.numbered = [] if self.rows is not None else _numbered(name, instance)

    @property
    def episodes(self) -> int | None:
        """The number of rows of a specification; None for a class, whose episodes have no end."""
        return None if self.rows is None else len(self.rows)

    def tools(self) -> list[Schema]:
        return self._tools

    def session(self) -> Session:
        instance = self.spare.pop() if self.spare else self._instance()
        return ClassSession(instance, self.numbered, self.rows)

    def _instance(self) -> Any:
        return own_code.bounded(f"environment {self.name}", self.make, self.seconds)(**self.arguments)


class ClassSession:
    """An instance of a user's class; `rows`: the arguments of `reset` for each episode, or None."""

    def __init__(self, instance: Any, numbered: Sequence[str], rows: Any):
        self.instance, self.numbered, self.rows = instance, numbered, rows
        self.methods = _methods(instance)

    @property
    def reward_of_call(self) -> float | None:
        rewards = getattr(self.instance, "rewards", None)
        return float(rewards[-1]) if rewards and isinstance(rewards[-1], int | float) else None

    @property
    def state(self) -> str | None:
        state = getattr(self.instance, "state", None)
        return None if state is None or callable(state) else text_of(state)[:SHOWN]

    @property
    def over(self) -> bool:
        return any(getattr(self.instance, key, False) is True for key in ("done", "finished"))

    def reset(self, number: int) -> str:
        row: Any = dict.fromkeys(self.numbered, number) if self.rows is None else self.rows[number]
        text = text_of(waited(self.instance.reset(**row)))
        if not _has(self.instance, "get_reward") and not _has(self.instance, "reward"):
            name = type(self.instance).__name__
            raise UserError(f"task.environment: {name} has neither get_reward() nor an attribute reward")
        asked = row.get("prompt") or [{"content": ""}]
        return text_of(asked[-1]["content"]) + text

    def call(self, name: str, arguments: Arguments) -> str:
        method = self.methods[name]
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError as error:
            raise Refused(f"{name}: {first_line(error)}") from None
        try:
            return text_of(waited(method(**arguments)))
        except ValueError as error:
            raise Refused(first_line(error)) from None

    def reward(self, completion: str) -> float:
        if _has(self.instance, "get_reward"):
            value = waited(self.instance.get_reward())
        else:  # in TRL's environments it is None until a call is paid for
            value = 0.0 if self.instance.reward is None else self.instance.reward
        return value  # the world checks it


def _has(instance: Any, name: str) -> bool:
    """Return whether an instance has an attribute, without running it if it is a property."""
    return inspect.getattr_static(instance, name, instance) is not instance


def check_arguments(make: Callable[..., Any], name: str, arguments: Arguments) -> None:
    """Raise UserError unless a class takes the arguments that a task gives."""
    if not callable(make):
        raise UserError(f"task.environment: {name} is neither a class nor a function that makes one")
    parameters = inspect.signature(make).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for key in arguments:
        if key not in parameters:
            raise UserError(
                f'task.{key}: environment {name} has no argument "{key}"{nearest(key, [*parameters])}'
            )
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in arguments:
            raise UserError(f"task.{key}: missing; environment {name} needs it")


def text_of(value: Any) -> str:
    """Return an observation or a state as text: "" for None, the texts of content blocks, else JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(block, Mapping) and "type" in block for block in value):
        return "\n".join(str(block.get("text", "")) for block in value if block["type"] == "text")
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that JSON does not have, or a structure that contains itself
        return str(value)


def _methods(instance: Any) -> dict[str, Callable[..., Any]]:
    """Return the tools of an environment by their names: public methods, as TRL reads them."""
    names = [name for name, _ in inspect.getmembers(type(instance), predicate=inspect.isfunction)]
    return {n: getattr(instance, n) for n in names if not n.startswith("_") and n not in NOT_TOOLS}


def _schema(name: str, method: Callable[..., Any]) -> Schema:
    """Return the JSON schema of a tool. Raises UserError if its annotations or docstring do not suffice."""
    from transformers.utils import get_json_schema  # imported here, because it loads torch

    try:
        return get_json_schema(method)
    except Exception as error:  # the library raises several kinds
        raise UserError(f"environment {name}: {method.__name__}: {first_line(error)}") from None


def _numbered(name: str, instance: Any) -> list[str]:
    """Return the arguments of `reset` that get the episode's number. Raises UserError if there is none."""
    if not callable(getattr(instance, "reset", None)):
        raise UserError(f"task.environment: {name} has no method reset")
    parameters = inspect.signature(instance.reset).parameters
    named = [key for key in NUMBERS if key in parameters]
    if named or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return named or ["seed"]
    raise UserError(
        f"task.environment: reset of {name} takes no seed, so that every episode would be the same; add it"
    )


def waited(value: Any) -> Any:
    """Return a value, or what an asynchronous method has returned in the end."""
    return _loop().run_until_complete(value) if inspect.isawaitable(value) else value


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the one loop of all coroutines, because clients and locks are bound to a loop."""
    return asyncio.new_event_loop()
