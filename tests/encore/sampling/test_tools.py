"""A call may hold anything: it is answered, in bounded time and length, and never raises."""

import random
import shutil

import guessing
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from encore import worlds
from encore.errors import UserError
from encore.recipe.tool import Tool
from encore.sampling.tools import LONGEST_CALL, Asked, ToolInWorld
from encore.sampling.tools import answers as answers_to
from encore.sampling.turns import closing, converse, room
from encore.worlds.calculator import calculate

CALCULATOR = Tool(name="calculator", calls=3, longest=4)
PYTHON = Tool(name="python", calls=3, longest=64)
WORDS = worlds.tokenizer([worlds.make({"world": "products"})])


def answers(tool: Tool, calls: list[str]) -> list[tuple[str, bool]]:
    """The answers to calls, and whether the calls were well formed."""
    answered = answers_to(ToolInWorld(tool), [Asked("", [call]) for call in calls])
    return [(answer.text, answer.good) for answer in answered]


sandboxed = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")


@pytest.mark.parametrize(
    ("call", "result"),
    [("37*48", "1776"), ("7+5", "12"), ("3-9", "-6"), ("6/3", "2"), ("7/2", "7/2"), (" 7 + 5 ", "12")],
)
def test_calculator(call: str, result: str):
    assert calculate(call) == result


@pytest.mark.parametrize(
    "call",
    [
        "",
        "37",
        "37*",
        "37*48+5",
        "7/0",
        "2**9",
        "9**9**9",
        "a+1",
        "__import__('os')",
        "1+1\n",
        "٣+٤",
        "1e9*2",
    ],
)
def test_anything_but_one_operation_is_malformed(call: str):
    assert calculate(call) is None
    assert answers(CALCULATOR, [f"<tool>{call}</tool>"]) == [("error", False)]


@settings(max_examples=100, deadline=None)
@given(st.text())
@example("(" * 100)
@example("-" * 99 + "1")
@example("9" * 50 + "*" + "9" * 49)
@example("\ud800")
def test_no_text_stops_the_calculator(call: str):
    ((answer, good),) = answers(CALCULATOR, [call])
    assert good or answer == "error"


def test_a_call_is_what_stands_between_the_last_two_tags():
    turns = ["<tool>1*1</tool>ab<tool>2*3</tool>", "2*3</tool>", "<tool>" + "1" * LONGEST_CALL + "+1</tool>"]
    assert answers(CALCULATOR, turns) == [("6", True), ("error", False), ("error", False)]


@pytest.mark.slow
@sandboxed
def test_python_answers_with_what_a_program_prints_and_its_last_expression():
    calls = [
        "print(1, 2, sep='-')\nx = 5\nx",
        "1/0",
        "2**",
        "x = 1",
        "while True: pass",
        "'\\ud800'",
        "(" * 500,
    ]
    found = answers(PYTHON, [f"<tool>{call}</tool>" for call in calls])
    assert found[0] == ("1-2\n5", True)
    assert found[1:4] == [("error: ZeroDivisionError", False), ("error: SyntaxError", False), ("", True)]
    assert not found[4][1]
    assert found[5] == ("?", True)
    assert not found[6][1]


@sandboxed
@settings(max_examples=30, deadline=None)
@given(st.text(max_size=60))
def test_no_text_stops_python(call: str):
    ((answer, _),) = answers(PYTHON, [f"<tool>{call}</tool>"])
    answer.encode()


def test_the_token_that_ends_a_call_must_be_one():
    assert closing(CALCULATOR, WORDS) == WORDS.convert_tokens_to_ids("</tool>")
    for end in ("</tool></tool>", "?"):
        with pytest.raises(UserError, match="must be one token"):
            closing(Tool(name="calculator", calls=1, longest=1, call=("<tool>", end)), WORDS)


def test_the_end_of_a_call_in_a_world_must_not_be_a_special_token():
    """A verifier reads the calls from a text without special tokens."""
    tool = Tool(name="frozen_lake", calls=1, longest=1, call=("<tool>", "<eos>"))
    with pytest.raises(UserError, match="is a special token of the policy's tokenizer"):
        closing(tool, WORDS)


def scripted(*turns: str, words=WORDS):
    """Draws that say these texts, one a turn, to every context; and the contexts they were given."""
    seen: list[list[list[int]]] = []

    def draw(contexts, cap, also):
        seen.append(contexts)
        ids = words(turns[len(seen) - 1])["input_ids"][:cap]
        end = next((place + 1 for place, token in enumerate(ids) if token in also), len(ids))
        return [ids[:end] for _ in contexts], [[-1.0] * end for _ in contexts]

    return draw, seen


def test_a_policy_is_stopped_answered_and_goes_on():
    draw, seen = scripted("<tool>12*12</tool>", "<tool>9</tool>", "<answer>144</answer><eos>")
    (talk,) = converse([[5, 6]], 40, draw, ToolInWorld(CALCULATOR), WORDS)
    own = "<tool>12*12</tool><tool>9</tool><answer>144</answer><eos>"
    assert WORDS.decode(talk.said()) == own
    assert WORDS.decode(talk.ids) == own.replace("12</tool>", "12</tool><result>144</result>").replace(
        "9</tool>", "9</tool><result>error</result>"
    )
    assert (talk.calls, talk.malformed) == (2, 1)
    assert [logp == -1.0 for logp in talk.logps] == [bool(one) for one in talk.own]
    assert seen[1] == [[5, 6, *WORDS("<tool>12*12</tool><result>144</result>")["input_ids"]]]


def test_results_are_cut():
    draw, _ = scripted("<tool>9999*9999</tool>", "<eos>")
    (talk,) = converse([[5]], 40, draw, ToolInWorld(CALCULATOR), WORDS)
    assert "<result>9998</result>" in WORDS.decode(talk.ids)
    assert room(CALCULATOR, WORDS) == 3 * (4 + 2)


@pytest.mark.parametrize("calls", [1, 3])
def test_the_turn_budget_is_held(calls: int):
    """After it a call has no result, and does not end the turn."""
    draw, seen = scripted(*["<tool>1*1</tool>"] * calls, "<tool>1*1</tool><answer>1</answer><eos>")
    (talk,) = converse([[5]], 60, draw, ToolInWorld(Tool(name="calculator", calls=calls, longest=4)), WORDS)
    assert talk.calls == calls
    assert len(seen) == calls + 1
    assert WORDS.decode(talk.ids).endswith("</result><tool>1*1</tool><answer>1</answer><eos>")


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30), st.lists(st.text(alphabet="123*+<>ot/l", max_size=12), min_size=4, max_size=4))
def test_the_cap_is_of_the_policys_own_tokens(cap: int, texts: list[str]):
    draw, _ = scripted(*[f"<tool>{text}</tool>" for text in texts])
    (talk,) = converse([[5]], cap, draw, ToolInWorld(CALCULATOR), WORDS)
    assert 0 < len(talk.said()) <= cap
    assert talk.own[-1] == 1  # nothing is answered that could not be gone on from


def test_rows_with_less_left_are_not_drawn_too_far():
    def draw(contexts, cap, also):
        first = len(contexts[0]) == 1
        own = [WORDS("<tool>1*1</tool>" if first else "1" * cap)["input_ids"] for _ in contexts]
        return ([[*own[0]], [11, 11, *own[1]]] if first else own), None

    talks = converse([[5], [5]], 9, draw, ToolInWorld(Tool(name="calculator", calls=1, longest=4)), WORDS)
    assert [len(talk.said()) for talk in talks] == [9, 9]
    assert talks[0].logps == []


def test_a_policy_acts_in_an_environment():
    """Its results, the rewards of its calls and the states are logged; the results are not its own tokens."""
    world = worlds.make({"environment": "guessing:Guess"})
    words = worlds.tokenizer([guessing.Calls()])
    around = ("<tool_response>", "</tool_response>")
    tool = Tool(name="environment", calls=3, longest=20, result=around)
    problem = world.problem(random.Random(5))
    secret = random.Random(problem.number).randint(0, 9)
    wrong = (secret + 1) % 10
    draw, _ = scripted(guessing.said(wrong), guessing.said(secret), "<answer>7</answer><eos>", words=words)
    prompt = words(f"<user>{problem.question}<assistant>")["input_ids"]
    (talk,) = converse([prompt], 80, draw, ToolInWorld(tool, world), words)
    turns = talk.turns(words)
    assert turns[::2] == [guessing.said(wrong), guessing.said(secret), "<answer>7</answer><eos>"]
    assert turns[3] == "<tool_response>right</tool_response>"
    assert words.decode(talk.said()) == "".join(turns[::2])
    assert talk.call_rewards == [0.0, 1.0]
    assert talk.states == [f'{{"guesses": [{wrong}]}}', f'{{"guesses": [{wrong}, {secret}]}}']
    assert world.reward(problem, words.decode(talk.said())) == 1 / 2
