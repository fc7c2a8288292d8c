"""Environments of a user: played, played again, and refused in one line for what can be wrong with one."""

import json
import random
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import guessing
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from trl.experimental.openreward import OpenRewardSpec

from encore import own_code
from encore.errors import UserError
from encore.worlds import make, sample
from encore.worlds.environment import CALL, Environment, calls
from encore.worlds.episodes import MOST, observe
from encore.worlds.protocol import Problem

GUESSES = st.lists(st.integers(-1, 9), max_size=4)


def environment(name: str = "Guess", **keys: object) -> Environment:
    """The environment of a class of guessing.py, which remembers nothing yet."""
    return replace(make({"environment": f"guessing:{name}", **keys}))


def first(world: Environment) -> Problem:
    return world.problem(random.Random(1))


def secret(problem: Problem, most: int = 9) -> int:
    return random.Random(problem.number).randint(0, most)


def shown(world: Environment, problem: Problem, *numbers: object) -> list[str]:
    """What is observed after each guess, as a sampler asks for it."""
    texts = [guessing.call(number) for number in numbers]
    turns = [observe(world, f"<user>{problem.question}", texts[: k + 1]) for k in range(len(texts))]
    return [turn.observation for turn in turns]


def test_a_policy_plays_an_episode_and_is_paid_by_the_environment():
    world = environment(right=0.4)
    problem = first(world)
    right = secret(problem)
    wrong = (right + 1) % 10
    assert problem.question == f"I think of a number.\n\n(episode {problem.number})"
    hint = "less" if wrong > right else "more"
    assert shown(world, problem, wrong, right, wrong) == [hint, "right", "over"]
    played = guessing.said(wrong, right, wrong)
    assert world.reward(problem, played) == 1 / 2  # of the two guesses before the episode was over
    assert world.verify(problem, played)
    assert world.steps(problem, played) == [False, True]
    assert world.step_ends(problem, played) == [len(guessing.said(wrong)), len(guessing.said(wrong, right))]
    assert not world.verify(problem, guessing.said(wrong))
    assert world.reward(problem, "") == 0.0


def test_its_tools_are_told_as_chat_templates_take_them():
    (schema,) = environment().tools()
    assert schema["function"]["name"] == "guess"
    assert schema["function"]["parameters"]["required"] == ["number"]


def test_the_keys_of_the_task_are_the_arguments_of_the_class():
    world = environment(most=0)
    assert world.verify(first(world), guessing.said(0))
    with pytest.raises(UserError, match=r'task.mots: .* has no argument "mots".*most'):
        first(environment(mots=3))
    assert environment("factory").tools()


def test_asynchronous_tools_are_waited_for():
    world = environment("Async")
    problem = first(world)
    assert world.verify(problem, guessing.said(secret(problem)))


def test_a_reward_may_be_an_attribute_and_an_episode_an_index():
    world = environment("ByIndex", episodes=3)
    problem = first(world)
    assert problem.question == f"task {problem.number}\n\n(episode {problem.number})"
    text = json.dumps({"name": "submit", "arguments": {"answer": str(problem.number)}})
    assert observe(world, problem.question, [text]).observation == '{"accepted": true}'
    assert world.verify(problem, f"{CALL[0]}{text}{CALL[1]}")


def test_the_rows_of_a_specification_are_the_episodes():
    world = environment("spec")
    rng = random.Random(2)
    problems = {problem.number: problem for problem in (world.problem(rng) for _ in range(30))}
    assert sorted(problems) == [0, 1, 2]
    assert problems[2].question == "Guess: task 20\n\n(episode 2)"


class Server:
    """What a server of ORS offers through its SDK: two tasks with one tool, which ends the episode."""

    server, name, namespace = "s", "sums", None
    tool = SimpleNamespace(
        name="submit",
        description="Submit the sum.",
        input_schema={"properties": {"answer": {"type": "integer"}}, "required": ["answer"]},
    )

    def list_tools(self):
        return [self.tool]

    def num_tasks(self, split):
        return 2

    def get_task(self, split, index):
        return {"terms": index}

    def list_tasks(self, split):
        return [self.get_task(split, index) for index in range(2)]

    @contextmanager
    def session(self, split=None, index=0, secrets=None):
        def call_tool(name, arguments):
            paid = float(arguments["answer"] == index + 1)
            blocks = [{"type": "text", "text": "thanks"}]
            return SimpleNamespace(blocks=blocks, reward=paid, metadata=None, finished=True)

        prompt = [{"type": "text", "text": f"What is {index}+1?"}]
        yield SimpleNamespace(get_prompt=lambda: prompt, call_tool=call_tool, list_tools=lambda: [self.tool])


def test_trls_specification_of_an_ors_server(monkeypatch):
    client = SimpleNamespace(environments=SimpleNamespace(get=lambda name: Server()))
    module = SimpleNamespace(OpenReward=lambda **_: client)
    monkeypatch.setitem(sys.modules, "openreward", module)
    monkeypatch.setattr(guessing, "ors", OpenRewardSpec("http://localhost:1"), raising=False)
    monkeypatch.setattr(own_code, "load", lambda name: guessing.ors)
    world = environment("ors")
    (schema,) = world.tools()
    assert schema["function"]["parameters"]["properties"]["answer"]["type"] == "integer"
    problem = Problem("(episode 1)", "", 0, number=1)
    assert world.player.begin(1).text == "What is 1+1?"

    def submitted(answer: int) -> str:
        return f'{CALL[0]}{{"name": "submit", "arguments": {{"answer": {answer}}}}}{CALL[1]}'

    assert world.reward(problem, submitted(2)) == 1.0
    assert world.reward(problem, submitted(3)) == 0.0
    assert world.reward(problem, "") == 0.0
    assert world.steps(problem, submitted(2) + submitted(2)) == [True]  # the episode is over then


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("7", "error: expected {"),
        ('{"name": "guess"', "error: expected {"),
        ('{"name": 3, "arguments": {}}', "error: expected {"),
        ('{"name": "guess", "arguments": [3]}', "error: expected {"),
        ("[" * 100_000, "error: expected {"),
        ('{"name": "reset", "arguments": {"seed": 1}}', 'error: no tool "reset"'),
        ('{"name": "get_reward"}', 'error: no tool "get_reward"'),
        ('{"name": "__init__"}', 'error: no tool "__init__"'),
        ('{"name": "guess", "arguments": {"numbre": 1}}', "error: guess: missing a required argument"),
        (guessing.call(99), "error: out of range"),
    ],
)
def test_a_mistake_of_the_policy_is_told_to_it(text, told):
    world = environment()
    turn = observe(world, first(world).question, [text])
    assert turn.observation.startswith(told)
    assert not turn.good


def play(world: Environment) -> None:
    """Play an episode with one guess."""
    problem = first(world)
    shown(world, problem, 1)
    world.reward(problem, guessing.said(1))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Hangs", r"episode \d+, call 1: not done after 0.2 seconds of one call"),
        ("HangsAtTheStart", r"episode \d+: not done after 0.2 seconds"),
        ("Raises", r"call 1: RuntimeError: the server is gone \(guessing.py, line \d+\)"),
        ("Lies", "reward 3.0; expected a number from 0 to 1; set task.reward_range"),
        ("NotANumber", "reward nan; expected a number from 0 to 1"),
        ("NoNumber", "reward None; expected a number from 0 to 1"),
        ("Forgets", r"call 1: 'observation \w+ \d+' first, and 'observation \w+ \d+' when played again"),
        ("Moody", r"reward 0.\d+ first, and 0.\d+ when played again; an environment must follow from"),
        ("NoSeed", "reset of guessing:NoSeed takes no seed"),
        ("NoReward", r"has neither get_reward\(\) nor an attribute reward"),
        ("NoDocstring", "environment guessing:NoDocstring: guess: "),
    ],
)
def test_what_is_wrong_with_an_environment_is_one_line(name, words):
    world = environment(name, seconds=0.2)
    with pytest.raises(UserError, match=words) as told:
        play(world)
    assert "\n" not in str(told.value)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(-1, 9), max_size=4)), max_size=8),
)
def test_memory_changes_nothing(sessions, episodes):
    """With few sessions episodes are played anew again and again, and end as with enough of them."""
    few, many = environment(sessions=sessions), environment()
    for number, numbers in episodes:
        problem = Problem(f"(episode {number})", "", 0, number=number)
        assert shown(few, problem, *numbers) == shown(many, problem, *numbers)
    few.player.observed.clear()
    for number, numbers in episodes:
        problem = Problem(f"(episode {number})", "", 0, number=number)
        text = guessing.said(*numbers)
        assert few.reward(problem, text) == many.reward(problem, text)
        assert few.steps(problem, text) == many.steps(problem, text)
    assert few.player.sessions <= sessions


@settings(max_examples=60, deadline=None)
@given(st.text())
@example(CALL[0] * 3 + CALL[1] * 3)
@example(f"{CALL[0]}\ud800{CALL[1]}")
@example(f'{CALL[0]}{{"name": "guess", "arguments": {{"number": 1e999}}}}{CALL[1]}')
@example(f'{CALL[0]}{{"name": "guess", "arguments": {{"number": "7"}}}}{CALL[1]}')
def test_no_text_of_a_policy_stops_it(text):
    world = environment("ByIndex", episodes=2)
    problem = first(world)
    assert world.reward(problem, text) == 0.0
    assert len(world.steps(problem, text)) == len(world.step_ends(problem, text)) == len(calls(text))


def test_calls_are_read_in_linear_time_and_counted():
    begun = time.perf_counter()
    assert calls(CALL[0] * 200_000) == []
    assert calls(CALL[1] * 200_000) == []
    assert time.perf_counter() - begun < 2
    assert len(calls(guessing.said(*[1] * 100))) == MOST


def test_train_and_test_have_no_episode_in_common():
    world = environment(episodes=200)
    train, test = ({p.number for p in sample(world, 20, 0, split)} for split in ("train", "test"))
    assert not train & test


def test_sessions_are_used_again():
    world = environment()
    for number in range(50):
        problem = Problem(f"(episode {number})", "", 0, number=number)
        shown(world, problem, 1)
        world.reward(problem, guessing.said(1))
    assert world.player.sessions <= 2  # one, and one more for what is played twice
