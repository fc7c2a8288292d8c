"""Training data: prompts of a world or of a Hub dataset, in the columns that reward functions read."""

import random
from collections.abc import Mapping, Sequence
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
    """Those of prompts() of at most `longest` tokens, or all; and how long the longest of them is.

    Raises UserError where there is none.
    """
    lengths = [len(ids) for ids in tokenizer(problems["prompt"][:])["input_ids"]]
    limit = longest or max(lengths)
    kept = [number for number, length in enumerate(lengths) if length <= limit]
    if not kept:
        raise UserError(f"longest_prompt: {limit} tokens, but the shortest prompt has {min(lengths)}")
    return problems.select(kept), max(lengths[number] for number in kept)


def replay_order(available: int, args: Any, every: int, share: float, seed: int) -> list[int]:
    """`replay` for a GRPOConfig: iterations of `every` optimizer steps, enough of them for `max_steps`.

    Raises UserError unless an iteration is of whole rollouts, and where there are too few prompts.
    """
    rollout = args.generation_batch_size // args.num_generations  # prompts
    updates = args.steps_per_generation * args.num_iterations  # of a rollout, x gradient_accumulation_steps
    rollouts, rest = divmod(every * args.gradient_accumulation_steps, updates)
    if rest:
        raise UserError(
            f"replay.every: {every} optimizer steps are not whole rollouts, of which each has "
            f"{updates / args.gradient_accumulation_steps:g} steps"
        )
    return replay(available, rollouts * rollout, -(-args.max_steps // every), share, seed)


def replay(available: int, size: int, iterations: int, share: float, seed: int) -> list[int]:
    """Indices of `available` prompts in the order of training, `size` of them an iteration.

    From the second iteration on a `share` of its prompts, rounded, is drawn without replacement from those of
    all earlier iterations (iterative GRPO, DeepSeekMath §4.1.4, whose replay trains the reward model); the
    others are new. Raises UserError where there are not enough new ones.
    """
    old = round(share * size)
    needed = iterations * size - (iterations - 1) * old
    if needed > available:
        raise UserError(
            f"problems: {needed} needed for {iterations} iterations of {size} prompts, there are {available}"
        )
    rng = random.Random(f"replay {seed}")
    new = rng.sample(range(available), needed)
    order, used = new[:size], size
    for _ in range(iterations - 1):
        iteration = rng.sample(new[:used], old) + new[used : used + size - old]
        used += size - old
        rng.shuffle(iteration)
        order += iteration
    return order


def hub_rows(task: dict[str, Any]) -> list[tuple[str, str, int]]:
    """(question, answer, 0) of each row of the Hub dataset that `task` names; see `hub`.

    The answer is "" where the task names no column of answers, as of prompts that nobody verifies.
    """
    data = hub(task, [key for key in ("question", "answer") if key in task])
    questions = [str(question) for question in data[task["question"]]]
    answers = [str(answer) for answer in data[task["answer"]]] if "answer" in task else [""] * len(questions)
    return [(question, answer, 0) for question, answer in zip(questions, answers, strict=True)]


def enough_rows(task: Mapping[str, Any], available: int, problems: int | None) -> None:
    """Raise UserError where a Hub dataset has fewer rows than are asked for."""
    if problems is not None and problems > available:
        raise UserError(
            f"problems: {problems} asked, but {task['hub']} split {task['split']} has {available}"
        )


def hub(task: dict[str, Any], keys: Sequence[str]) -> Any:
    """The Hub dataset that `task` names, at its pinned revision; its `keys` name columns of it.

    `task["hub"]` may also be a local folder of the same layout. Raises UserError where it cannot be loaded,
    is empty or lacks a column.
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
    for key in keys:
        if task[key] not in data.column_names:
            raise UserError(
                f"task.{key}: no column {task[key]!r} in {task['hub']}{nearest(task[key], data.column_names)}"
            )
    if not len(data):
        raise UserError(f"task.split: {task['hub']} split {task['split']} is empty")
    return data
