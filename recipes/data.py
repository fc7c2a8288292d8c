"""Training data: prompts of a world or of a Hub dataset, in the columns that reward functions read."""

from pathlib import Path
from typing import Any

from recipes.errors import UserError, nearest
from recipes.worlds.text import prompt

PROBLEMS = 4096  # distinct training problems of a world, unless the recipe says


def prompts(task: dict[str, Any], template: str, problems: int | None, seed: int) -> Any:
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
        if problems is not None and problems > len(rows):
            raise UserError(
                f"problems: {problems} asked, but {task['hub']} split {task['split']} has {len(rows)}"
            )
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


def hub_rows(task: dict[str, Any]) -> list[tuple[str, str, int]]:
    """(question, answer, 0) of each row of the Hub dataset that `task` names, at its pinned revision.

    `task["hub"]` may also be a local folder of the same layout.
    """
    from datasets import load_dataset

    local = Path(task["hub"]).is_dir()
    try:
        data = load_dataset(
            task["hub"],
            task.get("subset"),
            revision=None if local else task["revision"],
            split=task["split"],
        )
    except (OSError, ValueError) as error:
        raise UserError(
            f"task.hub: cannot load {task['hub']}: {str(error).strip().splitlines()[0]}"
        ) from error
    for key in ("question", "answer"):
        if task[key] not in data.column_names:
            raise UserError(
                f"task.{key}: no column {task[key]!r} in {task['hub']}{nearest(task[key], data.column_names)}"
            )
    if not len(data):
        raise UserError(f"task.split: {task['hub']} split {task['split']} is empty")
    pairs = zip(data[task["question"]], data[task["answer"]], strict=True)
    return [(str(question), str(answer), 0) for question, answer in pairs]
