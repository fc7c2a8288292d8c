"""Tools that a policy may call in the middle of a completion, as set by a recipe's key `tool`.

    tool: {name: calculator, calls: 5, longest: 8}
    tool: {name: python, calls: 3, longest: 256, call: ["<tool_call>", "</tool_call>"], result: ["[", "]"]}
    tool: {name: frozen_lake, calls: 8, longest: 2}

A call stands between the two texts of `call`. The second text is one token of the policy's tokenizer, so that
sampling can stop behind it. The result is put between the texts of `result`. Calls are text that nobody has
checked: whatever they hold, they get a result, of at most `longest` tokens.

The name of a world with a state is a tool too: a call acts in the task's world, and the result is what is
observed (encore/worlds/episodes.py).
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from encore import own_code
from encore.recipe.tool import Tool
from encore.sandbox.pool import Job, Result, run
from encore.sandbox.values import Failed, tokenizable
from encore.worlds import check_acts
from encore.worlds.calculator import ERROR, calculate
from encore.worlds.episodes import Acting, observe

LONGEST_CALL = 10_000  # characters; a longer call is malformed

# code before a program that collects what it prints, because the sandbox returns only values of expressions
PRINTED = "".join(
    (
        "_said = []\n",
        "def print(*values, sep=' ', end='\\n', **_):\n",
        "    _said.append((' ' if sep is None else sep).join(map(str, values))"
        " + ('\\n' if end is None else end))\n",
    )
)


@dataclass(frozen=True)
class Answer:
    """The answer to a call; `good`: whether the call was well formed.

    `reward`: the call's own reward, and `state`: the world's state as text, both None if the world has none.
    """

    text: str
    good: bool = True
    reward: float | None = None
    state: str | None = None


BAD = Answer(ERROR, good=False)  # the answer to a call that is malformed


def calculator(calls: Sequence[str]) -> list[Answer]:
    """Answer calls such as `37*48`, each one operation on two whole numbers (encore/worlds/calculator.py)."""
    results = [calculate(call) for call in calls]
    return [BAD if result is None else Answer(result) for result in results]


def python(calls: Sequence[str]) -> list[Answer]:
    """Run each call as a program in the sandbox; answer with its output and the value of its last expression.

    Raises UserError if no sandbox can be started.
    """
    results = run([Job(*_program(call)) for call in calls])
    return [_printed(result) for result in results]


TOOLS: Mapping[str, Callable[[Sequence[str]], list[Answer]]] = {"calculator": calculator, "python": python}


@dataclass(frozen=True)
class ToolInWorld:
    """A tool, and the world of the task, in which its calls act; None if they act in no world.

    Raises UserError if the world is a class of a user that lacks what episodes need.
    """

    tool: Tool
    world: Acting | None = None

    def __post_init__(self) -> None:
        if own_code.is_own(self.tool.name):
            check_acts(self.world, self.tool.name)


@dataclass(frozen=True)
class Asked:
    """A prompt, and a policy's turns since, the last of which ends with a call.

    A tool that does not act in a world needs no prompt, and gets "".
    """

    prompt: str
    turns: list[str]


def answers(used: ToolInWorld, asked: Sequence[Asked]) -> list[Answer]:
    """Return the tool's answer to the last turn of each."""
    tool = used.tool
    if tool.acts:
        assert used.world is not None
        return [_observed(used.world, tool, each) for each in asked]
    calls = [_call_of(tool, each.turns[-1]) for each in asked]
    good = [call for call in calls if call is not None]
    said = iter(TOOLS[tool.name](good) if good else [])
    return [BAD if call is None else next(said) for call in calls]


def _observed(world: Acting, tool: Tool, asked: Asked) -> Answer:
    """Return what is observed after the last turn."""
    turn = observe(world, asked.prompt, [_call_of(tool, text) or "" for text in asked.turns])
    return Answer(turn.observation, turn.good, turn.reward, turn.shown) if turn else BAD


def _call_of(tool: Tool, turn: str) -> str | None:
    """Return the text of the call that ends a turn; None if there is no call, or it is too long."""
    _, opened, call = turn.removesuffix(tool.call[1]).rpartition(tool.call[0])
    return call if opened and len(call) <= LONGEST_CALL else None


def _program(call: str) -> tuple[str, tuple[str, ...]]:
    """Return a program that runs a call and collects its output, and the expression for this output."""
    text = tokenizable(call)
    try:
        tree = ast.parse(text)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            shown = ast.Name("_last", ast.Store())
            tree.body[-1] = ast.copy_location(ast.Assign([shown], last.value), last)
            text = ast.unparse(ast.fix_missing_locations(tree))
            text += "\nif _last is not None: print(_last)"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass  # the program fails in the sandbox too, which reports the error
    return PRINTED + text, ("''.join(_said)",)


def _printed(result: Result) -> Answer:
    """Return a program's output; if the program failed, the error that it raised or how it was ended."""
    (value,) = result.values
    if isinstance(value, Failed):
        return Answer(f"{ERROR}: {value.why if result.ended == 'done' else result.ended}", good=False)
    return Answer(tokenizable(str(value)).rstrip("\n"))
