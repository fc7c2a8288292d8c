"""Verifiers, which say whether an answer is right. A world has its own; a data set names one (`verifier`)."""

from collections.abc import Callable, Sequence

from encore import own_code
from encore.errors import UserError
from encore.recipe.reward_names import TESTS
from encore.recipe.task import Task
from encore.rewards import unit_tests
from encore.rewards.answer_forms import copied
from encore.rewards.math_answers import Comparer, Verdict
from encore.sandbox.verdicts import passed
from encore.worlds.answers import answer
from encore.worlds.expressions import makes, work_out
from encore.worlds.final_answer import final_answer, reference
from encore.worlds.protocol import Problem

Verifier = Callable[[Problem, str], bool]


def of_task(task: Task) -> Verifier:
    """Return the verifier of a task: the world's, or the one that the data set names (default: math)."""
    world = task.make_world()
    return world.verify if world else verifier(task.verifies)


def answer_suffices(task: Task) -> bool:
    """Return whether a completion is right that states the right answer alone: no tests, no calls decide."""
    world = task.make_world()
    return getattr(world, "answer_suffices", True) if world else task.verifies != TESTS


def verifier(name: str) -> Callable[[Problem, str], bool]:
    """Return the verifier that a data set's task names; encore/recipe/task.py lists the names.

    A user's own verifier is called with a question, its answer and a completion. Its errors are raised as
    own_code.Failed, with the completion. Such an error ends a training; an evaluation counts the answer as
    wrong and reports the error.
    """
    if own_code.is_own(name):
        return _own_verifier(name)
    if name == TESTS:
        return lambda problem, completion: passed(unit_tests.verdicts([problem], [completion])[0])
    return countdown if name == "countdown" else math_verifier()


def _own_verifier(name: str) -> Callable[[Problem, str], bool]:
    function = own_code.load(name)
    right = own_code.bounded(name, lambda *arguments: bool(function(*arguments)))

    def verify(problem: Problem, completion: str) -> bool:
        try:
            return right(problem.question, problem.answer, completion)
        except UserError as error:
            raise type(error)(f"{error}; it was given the completion {completion[:80]!r}") from error

    return verify


def countdown(problem: Problem, completion: str) -> bool:
    """Return whether the answer is an expression with the right value, made of the problem's numbers."""
    gold = work_out(problem.answer)
    return gold is not None and makes(work_out(answer(completion) or ""), gold.numbers, gold.value)


def math_verifier(equal: Comparer | None = None) -> Callable[[Problem, str], bool]:
    """Return a verifier that says whether the `math_verdict` of a completion is `right`."""
    compare = equal or Comparer()

    def verify(problem: Problem, completion: str) -> bool:
        return math_verdict(compare, problem, completion) == "right"

    return verify


def math_verdict(compare: Comparer, problem: Problem, completion: str) -> Verdict:
    r"""Return the verdict on the completion's final answer. Its CPU time is bounded; it never raises.

    In a reference solution the answer is its last `\boxed{…}`, or the text after its last `####`. An
    expression copied from the question is not an answer, unless the data set's answer is exactly this
    expression.
    """
    pair = _answers(problem, completion)
    return pair if isinstance(pair, str) else compare.verdict(*pair)


def math_verdicts(
    compare: Comparer, problems: Sequence[Problem], completions: Sequence[str]
) -> list[Verdict]:
    """Return the `math_verdict` of a rollout's completions, (completions,), within one budget of CPU time."""
    pairs = [_answers(*texts) for texts in zip(problems, completions, strict=True)]
    judged = iter(compare.verdicts([pair for pair in pairs if not isinstance(pair, str)]))
    return [pair if isinstance(pair, str) else next(judged) for pair in pairs]


def _answers(problem: Problem, completion: str) -> tuple[str, str] | Verdict:
    """Return the data set's answer and the completion's answer, or the verdict if no comparison is needed."""
    claimed, gold = final_answer(completion), reference(problem.answer)
    if claimed is None:
        return "unreadable"
    return "wrong" if copied(claimed, problem.question, gold) else (gold, claimed)
