"""Training problems of a world or of a data set, in the columns that reward functions read."""

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
    """A `datasets.Dataset` with the columns prompt, question, answer, difficulty (0 where unknown) and, where
    prompts begin the answer, prefill; number, if the world's problems have one.

    `problems`: how many distinct ones (default: worlds.PROBLEMS of a world, all rows of a data set). Raises
    UserError where there are fewer.
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
            "prompt": [form.put(question, own) for question, own in zip(questions, begun, strict=True)],
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
    """The problems of a stage, or of a domain of it, that may be asked, put by `form`; and what was left out.

    Left out is what stands in the data sets `evaluated`, which a check counts, and what has more tokens than
    `longest`, whose number is the third (None: there is no longest). Raises UserError where none is
    left.
    """
    given = of_task(part.questions, form, part.problems, seed)
    good, found = clean(given, evaluated) if evaluated and isinstance(part.task, DataSet) else (given, [])
    if longest is None:
        return good, found, None
    short, _ = fitting(good, tokenizer, longest)
    return short, found, len(good) - len(short)


def clean(problems: Any, evaluated: DataSets) -> tuple[Any, list[health.Check]]:
    """The problems that stand in no evaluation's data set, name -> task; and a check that says how many do.

    Raises UserError where none is left.
    """
    bad = {*contaminated(problems["question"][:], asked(evaluated))}
    if len(bad) == len(problems):
        raise UserError(f"decontaminate: all {len(bad)} prompts stand in {', '.join(evaluated)}")
    kept = problems.select([i for i in range(len(problems)) if i not in bad])
    return kept, [left_out(len(bad), len(problems), evaluated)]


def asked(evaluated: DataSets) -> list[str]:
    """The questions of the evaluations' data sets, name -> task."""
    found: list[str] = []
    for task in evaluated.values():
        if isinstance(task, Comparisons):
            found += [question for question, _ in hub_preferences.answered(task)]
        else:
            found += hub.questions(task)
    return found


def left_out(bad: int, given: int, evaluated: DataSets) -> health.Check:
    """The check that tells how many of the prompts given were contaminated; it never fails."""
    what = f"{bad} of {given} prompts share {SIZE} words in a row with {', '.join(evaluated)}: left out"
    return health.check("contaminated", True, bad, given, what)


def fitting(problems: Any, tokenizer: Any, longest: int | None) -> tuple[Any, int]:
    """The problems whose prompt has at most `longest` tokens, or all; and the length of the longest kept.

    Raises UserError where none is left.
    """
    lengths = [len(ids) for ids in prompt_ids(problems["prompt"][:], tokenizer)]
    limit = longest or max(lengths)
    kept = [number for number, length in enumerate(lengths) if length <= limit]
    if not kept:
        raise UserError(f"longest_prompt: {limit} tokens, but the shortest prompt has {min(lengths)}")
    return problems.select(kept), max(lengths[number] for number in kept)
