"""The part of a reasoning-gym task that runs in the sandbox: the drawing of problems, and the scoring.

It runs there because the library's scorers read the text of a policy, some of them by `eval`.
encore/worlds/gym.py gives this source to a sandbox as a program, and reads the values of calls on it.
"""

import dataclasses
import json
import pickle
import random
import resource
import signal
import typing
from collections.abc import Callable
from typing import Any

import numpy
from pydantic import TypeAdapter, ValidationError
from reasoning_gym.factory import DATASETS, create_dataset

RIGHT = 0.99  # least score of a right answer; rounding costs some scorers the rest
TO_SCORE, TO_DRAW = 2, 20  # seconds of CPU that an answer and a problem may take
SET = ("seed", "size")  # fields that Encore sets in every configuration
# metadata with an answer, for tasks without the field `answer`
EXAMPLES = ("example_answer", "example_correct_answer", "possible_answer")


class Late(BaseException):
    """An error raised when a call's time is over. It is no Exception, so the library does not catch it."""


def _ring(*_: Any) -> None:
    raise Late


signal.signal(signal.SIGXCPU, _ring)


def _timed(limit: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of `function`. Raises Late after `limit` seconds of CPU, or a second later."""
    used, most = resource.getrusage(resource.RUSAGE_SELF), resource.getrlimit(resource.RLIMIT_CPU)[1]
    end = int(used.ru_utime + used.ru_stime) + 1 + limit
    resource.setrlimit(resource.RLIMIT_CPU, (min(end, most - 1), most))
    return function(*arguments)


class Refused(Exception):
    """An error for a refused task, with the key, what is wrong with its value, and the valid keys."""


def _hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.name not in SET}


def _typed(hint: Any, value: Any) -> Any:
    """Return a JSON value converted to the type `hint`. Raises ValidationError for another type."""
    if typing.get_origin(hint) is tuple and len(parts := typing.get_args(hint)) == 1:
        hint = tuple[parts[0], ...]  # type: ignore[valid-type]  # the library means it so
    return TypeAdapter(hint).validate_json(json.dumps(value), strict=True)


def opened(name: str, keys: str) -> Any:
    """Return the data set of the task `name`, with its keys and their values as JSON in `keys`.

    Raises Refused if the library refuses the name or the keys.
    """
    if name not in DATASETS:
        raise Refused("", name, [*DATASETS])
    hints, values = _hints(DATASETS[name][1]), {}
    for key, value in json.loads(keys).items():
        if key not in hints:
            raise Refused(key, None, [*hints])
        try:
            values[key] = _typed(hints[key], value)
        except ValidationError as error:
            raise Refused(key, error.errors()[0]["msg"], []) from None
    try:
        return create_dataset(name, seed=0, size=1, **values)
    except Exception as error:
        words = " ".join(str(error).split()) or type(error).__name__
        named = [key for key in sorted(hints, key=len, reverse=True) if key in words]
        raise Refused(named[0] if named else "", words, []) from None


def mistake(name: str, keys: str) -> tuple[Any, ...] | None:
    """Return the key, the mistake and the valid keys if a task is refused, else None."""
    try:
        opened(name, keys)
    except Refused as error:
        return error.args
    return None


class Task:
    """A task whose problems are numbered; a number fixes the library's seed and index together."""

    def __init__(self, name: str, keys: str) -> None:
        self.data = opened(name, keys)

    def entry(self, item: int) -> dict[str, Any]:
        """Return a problem in the library's form, the same in every process."""
        random.seed(item)
        numpy.random.seed(item)
        try:
            return self.data[item]
        except IndexError:  # a data set that is created completely when it is opened has only `size` problems
            config = dataclasses.replace(self.data.config, seed=item, size=1)
            return type(self.data)(config)[0]

    def draw(self, item: int) -> tuple[str, str, bytes] | None:
        """Return question, answer and pickled problem; None if the library's own answer scores as wrong."""
        entry = _timed(TO_DRAW, self.entry, item)
        answer, held = entry["answer"], entry.get("metadata") or {}
        if answer is None:  # the task has many right answers, and so none in this field
            examples = [held[key] for key in EXAMPLES if held.get(key) is not None]
            answer = next((text if isinstance(text, str) else json.dumps(text) for text in examples), "")
        answer = str(answer).strip()
        if answer and _timed(TO_SCORE, self.data.score_answer, answer, entry) < RIGHT:
            return None
        return entry["question"], answer, pickle.dumps(entry)

    def score(self, item: int, entry: bytes, answer: str) -> float:
        """Return the score of an answer, from 0 to 1; `entry`: the pickled problem, empty if unknown."""
        problem = pickle.loads(entry) if entry else _timed(TO_DRAW, self.entry, item)
        random.seed(item)
        return min(max(float(_timed(TO_SCORE, self.data.score_answer, answer, problem)), 0.0), 1.0)
