"""The training problems of a world or a data set, in the columns that reward functions read."""

from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from encore import worlds
from encore.data import hub, hub_preferences
from encore.data.decontamination import SIZE, contaminated
from encore.data.forms import NUMBER, Prompter
from encore.data.token_ids import prompt_ids
from encore.errors import UserError
from encore.recipe.task import Asked, Comparisons, DataSet, Questions, QuestionTask, WorldTask
from encore.runtime import health

DataSets = Mapping[str, Questions | Comparisons]  # the name of an evaluation's task -> its data set


def of_task(task: QuestionTask, form: Prompter, problems: int | None, seed: int) -> Any:
    """Return a `datasets.Dataset` of problems and their prompts.

    It has the columns prompt, question, answer, difficulty (0 if unknown); prefill, if prompts begin the
    answer; and number, if the world's problems have one. `problems` is the number of distinct problems
    (default: worlds.PROBLEMS for a world, all rows for a data set). Raises UserError if there are fewer.
    """
    if isinstance(task, WorldTask):
        drawn = worlds.sample(task.make_world(), problems or worlds.PROBLEMS, seed, "train")
        rows = [(p.question, p.answer, p.difficulty) for p in drawn]
        begun, numbers = [p.begun for p in drawn], [p.number for p in drawn]
    else:
        rows = hub.problems(task, problems)
        hub.require_rows(task, len(rows), problems)
        begun, numbers = [""] * len(rows), []
    questions, answers, difficulties = (list(column) for column in zip(*rows, strict=True))
    return Dataset.from_dict(
        {
            "prompt": [
                form.put(question, beginning) for question, beginning in zip(questions, begun, strict=True)
            ],
            "question": questions,
            "answer": answers,
            "difficulty": difficulties,
            **form.columns(begun),
            **({NUMBER: numbers} if any(numbers) else {}),
        }
    )


def of_part(
    part: Asked, form: Prompter, tokenizer: Any, seed: int, evaluated: DataSets, longest: int | None
) -> tuple[Any, list[health.Check], int | None]:
    """Return the problems of a stage or domain, health checks, and the number of prompts left out as long.

    Two kinds of problems are left out: those that are also in the data sets `evaluated`, which a check
    counts, and those with a prompt of more than `longest` tokens, whose number is the third value (None if
    `longest` is None). Raises UserError if no problem is left.
    """
    problems = of_task(part.questions, form, part.problems, seed)
    good, clean_checks = (
        clean(problems, evaluated) if evaluated and isinstance(part.task, DataSet) else (problems, [])
    )
    if longest is None:
        return good, clean_checks, None
    short, _ = fitting(good, tokenizer, longest)
    return short, clean_checks, len(good) - len(short)


def clean(problems: Any, evaluated: DataSets) -> tuple[Any, list[health.Check]]:
    """Return the problems that are in none of the data sets `evaluated`, and a check that counts the others.

    Raises UserError if no problem is left.
    """
    bad = {*contaminated(problems["question"][:], asked(evaluated))}
    if len(bad) == len(problems):
        raise UserError(f"decontaminate: all {len(bad)} prompts stand in {', '.join(evaluated)}")
    kept = problems.select([i for i in range(len(problems)) if i not in bad])
    return kept, [left_out(len(bad), len(problems), evaluated)]


def asked(evaluated: DataSets) -> list[str]:
    """Return the questions of all these data sets in one list."""
    questions: list[str] = []
    for task in evaluated.values():
        if isinstance(task, Comparisons):
            questions += [question for question, _ in hub_preferences.answered(task)]
        else:
            questions += hub.questions(task)
    return questions


def left_out(bad: int, prompts: int, evaluated: DataSets) -> health.Check:
    """Return the check that says how many of the prompts were contaminated; it never fails."""
    what = f"{bad} of {prompts} prompts share {SIZE} words in a row with {', '.join(evaluated)}: left out"
    return health.make_check("contaminated", True, bad, prompts, what)


def fitting(problems: Any, tokenizer: Any, longest: int | None) -> tuple[Any, int]:
    """Return the problems whose prompt has at most `longest` tokens, and the longest prompt's length.

    Raises UserError if no problem is left.
    """
    lengths = [len(ids) for ids in prompt_ids(problems["prompt"][:], tokenizer)]
    limit = longest or max(lengths)
    kept = [number for number, length in enumerate(lengths) if length <= limit]
    if not kept:
        raise UserError(f"longest_prompt: {limit} tokens, but the shortest prompt has {min(lengths)}")
    return problems.select(kept), max(lengths[number] for number in kept)
