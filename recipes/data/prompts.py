"""Training data: prompts of a world or of a Hub dataset, in the columns that reward functions read."""

from typing import Any

from recipes.data.hub import enough_rows, hub_rows
from recipes.errors import UserError
from recipes.worlds.text import prompt

PROBLEMS = 4096  # distinct training problems of a world, unless the recipe says


def load(task: dict[str, Any], template: str, problems: int | None, seed: int) -> Any:
    """A `datasets.Dataset` with the columns prompt, question, answer, difficulty (0 where unknown).

    `problems`: how many distinct ones (default: PROBLEMS of a world, all rows of a Hub dataset). Raises
    UserError where there are fewer.
    """
    from datasets import Dataset

    if "world" in task:
        from recipes import worlds

        found = worlds.sample(worlds.make(task), problems or PROBLEMS, seed, "train")
        rows = [(p.question, p.answer, p.difficulty) for p in found]
    else:
        rows = hub_rows(task)
        enough_rows(task, len(rows), problems)
        rows = rows[:problems]
    questions, answers, difficulties = (list(column) for column in zip(*rows, strict=True))
    return Dataset.from_dict(
        {
            "prompt": [prompt(template, question) for question in questions],
            "question": questions,
            "answer": answers,
            "difficulty": difficulties,
        }
    )


def fitting(problems: Any, tokenizer: Any, longest: int | None) -> tuple[Any, int]:
    """Those of `load` of at most `longest` tokens, or all; and how long the longest of them is.

    Raises UserError where there is none.
    """
    lengths = [len(ids) for ids in tokenizer(problems["prompt"][:])["input_ids"]]
    limit = longest or max(lengths)
    kept = [number for number, length in enumerate(lengths) if length <= limit]
    if not kept:
        raise UserError(f"longest_prompt: {limit} tokens, but the shortest prompt has {min(lengths)}")
    return problems.select(kept), max(lengths[number] for number in kept)
