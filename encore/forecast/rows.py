"""The number of rows that a stage learns from or answers, if its recipe does not give the number."""

from typing import Any

from encore.forecast.hardware import Assumptions
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds import (
    LabelStage,
    LabelStepsStage,
    PretrainStage,
    RejectionSamplingStage,
    SampleStage,
)
from encore.recipe.kinds.sft import MixedIn
from encore.recipe.task import SLICE, DataSet, Task

# numbers of rows of a data set, by subset and split, from the data set's own page
ROWS = {
    ("Anthropic/hh-rlhf", "", "train"): 160_800,
    ("DigitalLearningGmbH/MATH-lighteval", "default", "train"): 7_500,
    ("HuggingFaceH4/MATH-500", "", "test"): 500,
    ("HuggingFaceH4/aime_2024", "", "train"): 30,
    ("HuggingFaceH4/no_robots", "", "train"): 9_500,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "train_gen"): 61_135,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "train_prefs"): 61_135,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "train_sft"): 61_135,
    ("HuggingFaceH4/ultrafeedback_binarized", "", "test_prefs"): 2_000,
    ("NeelNanda/pile-10k", "", "train"): 10_000,
    ("berkeley-nest/Nectar", "", "train"): 182_954,
    ("knoveleng/open-rs", "", "train"): 7_000,
    ("open-r1/DAPO-Math-17k-Processed", "en", "train"): 14_116,
    ("open-r1/Mixture-of-Thoughts", "all", "train"): 349_317,
    ("open-r1/Mixture-of-Thoughts", "math", "train"): 93_733,
    ("openai/gsm8k", "main", "train"): 7_473,
    ("trl-internal-testing/tldr-preference-sft-trl-style", "", "train"): 116_722,
    ("trl-internal-testing/tldr-preference-trl-style", "", "train"): 92_858,
}
DOCUMENTS = 4_096  # documents of a world if nothing sets their number
KEPT = 0.5  # share of the completions of rejection sampling that are right
RANKED = {"berkeley-nest/Nectar": 7}  # number of replies in a row; other data sets have two


def rows(graph: Graph, node: Node, assumed: Assumptions) -> tuple[float, tuple[str, ...]]:
    """Return the number of rows (prompts, pairs, rankings …) that a stage gets.

    The second value is the assumptions that were made for this number, as texts.
    """
    stage, inputs = graph.stage(node), graph.inputs(node)
    parts: dict[str, Any] = dict(stage.parts)
    if isinstance(stage, LabelStage | LabelStepsStage | PretrainStage):
        parts[""] = stage
    count, unknown = 0.0, []
    if "data" in inputs:
        count = made(graph, inputs["data"], assumed)[0]
        if not isinstance(stage, LabelStage):
            count = min(count, getattr(stage, "problems", None) or count)
    for name, part in parts.items():
        if part.task is None or (name == "" and "data" in inputs):
            continue
        if isinstance(part, MixedIn) and part.share is not None:
            count /= 1 - part.share
            continue
        corpus, problems = getattr(part, "corpus", None), getattr(part, "problems", None)
        rows_of_source, missing = _of_source(part.task, corpus and corpus.documents, problems, assumed)
        count += rows_of_source
        unknown += missing
    return count, tuple(unknown)


def made(graph: Graph, node: Node, assumed: Assumptions) -> tuple[float, int]:
    """Return the number of rows that a stage of data makes, and the number of replies in each row."""
    stage, upstream = graph.stage(node), graph.inputs(node).get("data")
    inputs, _ = rows(graph, node, assumed)
    if isinstance(stage, RejectionSamplingStage):
        return inputs * stage.args.num_generations * KEPT, 1
    if isinstance(stage, SampleStage):
        return inputs, stage.args.num_generations
    if isinstance(stage, LabelStepsStage):
        return inputs, made(graph, upstream, assumed)[1] if upstream else 1
    if isinstance(stage, LabelStage):
        replies = made(graph, upstream, assumed)[1] if upstream else ranked(stage)
        return inputs * (1 - stage.held_out) * (replies / 2 if stage.keep == "right" else 1), replies
    return inputs, 1


def ranked(stage: LabelStage) -> int:
    """Return the number of replies in a row of a data set of preferences."""
    return RANKED.get((stage.task.hub if stage.task else None) or "", 2)


def _of_source(
    task: Task, documents: int | None, problems: int | None, assumed: Assumptions
) -> tuple[float, list[str]]:
    """Return the number of rows of a task, and the assumptions that were made for it, as texts.

    `documents` and `problems` are the numbers that the recipe sets; None if it does not.
    """
    if not isinstance(task, DataSet):
        return problems or documents or DOCUMENTS, []
    name = task.hub or task.file or "?"
    known = ROWS.get((name, task.subset or "", task.split or "")) or _of_slice(task.split or "")
    if known is None and problems is None:
        return assumed.rows, [f"{assumed.rows:,} rows of {name} {task.split or ''}".strip()]
    return min(problems or known or assumed.rows, known or problems or 0), []


def _of_slice(split: str) -> int | None:
    """Return the number of rows in a slice such as train[:1000].

    The result is None if the slice's end is missing, or counted from the end.
    """
    slices = SLICE.fullmatch(split)
    start, to = slices.group(2, 3) if slices else ("", "")
    return int(to) - int(start or 0) if to.isdigit() and not start.startswith("-") else None
