"""Tasksets of the library verifiers: their tools, states and rewards, and what only the library can play."""

import json
import random

import pytest

pytest.importorskip("verifiers")
import fruit_guess

from encore.errors import UserError
from encore.worlds import make
from encore.worlds.environment import CALL, Environment
from encore.worlds.episodes import observe
from encore.worlds.protocol import Problem


def taskset(name: str = "fruit-guess", **keys: object) -> Environment:
    return make({"environment": "verifiers", "taskset": name, "reward_range": [-1, 1], "right": 0.5, **keys})


def call(place: object) -> str:
    return json.dumps({"name": "letter", "arguments": {"place": place}})


def of(number: int) -> Problem:
    return Problem(f"(episode {number})", "", 0, number=number)


def test_each_task_is_an_episode():
    rng = random.Random(1)
    problems = [taskset().problem(rng) for _ in range(30)]
    assert {problem.number for problem in problems} == {0, 1, 2}
    assert problems[0].question.startswith("Be brief.\n\nWhich fruit do I mean?\n\n(episode ")


def test_tools_act_on_the_state_that_rewards_read():
    world = taskset()
    (schema,) = world.tools()
    assert schema["function"]["name"] == "letter"
    turn = observe(world, "(episode 1)", [call(0), call(4)])
    assert (turn.observation, turn.shown) == ("e", '{"letters": 2}')
    word = fruit_guess.WORDS[1]
    asked = "".join(f"so{CALL[0]}{call(place)}{CALL[1]}" for place in (0, 4))
    assert world.reward(of(1), asked + word) == pytest.approx(0.8)
    assert world.reward(of(1), asked + "plum") == pytest.approx(-0.2)
    assert world.reward(of(1), word) == 1.0
    assert world.verify(of(1), asked + word)
    assert not world.verify(of(2), word)
    refused = "".join(f"{CALL[0]}{text}{CALL[1]}" for text in ("?", call(99), call("x")))
    assert world.reward(of(1), refused + asked + word) == pytest.approx(0.7)  # the tool has counted 99 too


@pytest.mark.parametrize(
    ("text", "told"),
    [(call("x"), "error: Error executing tool letter"), (call(99), "error: "), ("?", "error: expected {")],
)
def test_a_mistake_of_the_policy_is_told_to_it(text, told):
    turn = observe(taskset(), "(episode 0)", [text])
    assert turn.observation.startswith(told)
    assert not turn.good


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"count": "many"}, "task.count: taskset fruit-guess: "),
        ({"cuont": 2}, "task.cuont: taskset fruit-guess: Extra inputs"),
        ({"count": 0}, "task.taskset: fruit-guess has no tasks"),
        ({"version": "9.0"}, "task.version: 9.0 of fruit-guess is asked for, and none is installed"),
        ({"name": "no-such-taskset"}, "task.taskset: no-such-taskset: "),
        ({"name": "boxed-guess"}, "task.taskset: boxed-guess: its tasks need a container, which only"),
    ],
)
def test_what_cannot_be_played_is_one_line(keys, words):
    with pytest.raises(UserError) as told:
        taskset(**keys).tools()
    assert str(told.value).startswith(words)
    assert "\n" not in str(told.value)
