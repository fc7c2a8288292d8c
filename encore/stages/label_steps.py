"""Stage `label_steps`: labels of every step of some solutions, without a verifier of steps.

    python -m encore.stages label_steps --config '{"by": "rollouts", "args": {"num_generations": 8, …}}' \\
        --input data=results/…/metrics.json --input policy=results/…/metrics.json …

`by` names the source of the labels:

    rollouts   The policy continues `num_generations` times from a step. With `estimation: hard` the step
               is right if one continuation gets to a right answer; with `soft` its label is the share of
               continuations that do (Math-Shepherd, Wang et al. 2023, arXiv 2312.08935, Eq. 3 and 4). A
               world says what its steps are; in a data set they are lines. The whole completion is one
               more step, labelled by its answer.
    dataset    the labels of a data set (encore/data/step_labels.py)

Equal beginnings of a problem are continued once. The product is `final/step_labels.jsonl`. A killed run
starts again, and ends with the same bits.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from encore.data import forms, samples, step_labels
from encore.data.samples import Sample
from encore.data.step_labels import Labelled, Solved
from encore.recipe.base import present
from encore.recipe.kinds import LabelStepsStage
from encore.rewards import verifiers
from encore.rewards.step_rewards import step_ends, told, verdicts
from encore.runtime import health
from encore.sampling.draw import FORMULA, draw
from encore.stages.job import Job, asked_by
from encore.stages.outcome import Outcome, untrained
from encore.stages.policy import locate_policy
from encore.worlds.protocol import World

Beginning = tuple[int, str]  # index of the row, text of the beginning of one of its completions


def run(stage: LabelStepsStage, job: Job) -> Outcome:
    """Label the steps, and save the labelled rows."""
    began = time.perf_counter()
    if stage.by == "dataset":
        assert stage.template is not None
        solved = step_labels.of_task(present(stage.task), stage.template, stage.problems)
        step_labels.save(solved, job.workdir / "final")
        return untrained(_counts(solved), [], 0, 0, FORMULA, began)
    assert stage.args is not None
    rows = samples.load(job.inputs["data"])
    drawn_by = asked_by(job.inputs["data"])
    world = drawn_by.questions.make_world()
    source, tokenizer = locate_policy(stage, job.inputs)
    texts = sorted({text for row in rows for text in (row["prompt"], *row["completions"])})
    checks = health.stop_at_errors([health.known_tokens(tokenizer, texts, "sample")])

    ends = [[step_ends(world, samples.problem(row), text) for text in row["completions"]] for row in rows]
    beginnings = _distinct_beginnings(rows, ends)
    form = forms.of(drawn_by.form, tokenizer)
    asked = [rows[number]["prompt"] + text for number, text in beginnings]
    drawn = draw(asked, stage.args, source, form.ends, stage, job.seed, job.progress)
    verify, size = verifiers.of_task(drawn_by.questions), stage.args.num_generations
    right: dict[Beginning, float] = {}
    for place, (number, text) in enumerate(beginnings):
        mine = drawn.completions[place * size : (place + 1) * size]
        problem = samples.problem(rows[number])
        verified = [float(verify(problem, problem.begun + text + str(rest))) for rest in mine]
        right[number, text] = _estimated(verified, stage.estimation or "hard")
    solved = [_labelled(number, row, ends[number], right, verify) for number, row in enumerate(rows)]
    step_labels.save(solved, job.workdir / "final")
    metrics = _counts(solved) | {"rollouts": float(len(drawn.completions))}
    if world:
        metrics |= _agreement(solved, world)
    return untrained(metrics, checks, drawn.tokens, drawn.parameters, FORMULA, began)


def _distinct_beginnings(rows: Sequence[Sample], ends: Sequence[Sequence[Sequence[int]]]) -> list[Beginning]:
    """Return the distinct beginnings of completions of `rows`, each up to the end of a step, in order.

    `ends` has the offsets of the ends of steps, in characters, for each completion of each row.
    """
    return [
        *dict.fromkeys(
            (number, text[:end])
            for number, row in enumerate(rows)
            for text, places in zip(row["completions"], ends[number], strict=True)
            for end in places
        )
    ]


def _estimated(right: Sequence[float], estimation: str) -> float:
    """Return the label of a step; `right` is 1 for each of its rollouts with a right answer, else 0."""
    return max(right) if estimation == "hard" else sum(right) / len(right)


def _agreement(solved: Sequence[Solved], world: World) -> dict[str, float]:
    """Measure how well labels agree with the world's step verifier, up to the first wrong step.

    `accuracy/steps` is the share of steps whose label is above a half if and only if they are right.
    `auc/steps` is the probability that a right step has a higher label than a wrong one. `truth/steps` is the
    share of right steps.
    """
    truths: list[bool] = []
    labels: list[float] = []
    for row in solved:
        problem = samples.problem(row)
        for text, steps in zip(row["completions"], row["steps"], strict=True):
            said = [right for _, right in verdicts(world, problem, text)]
            until = said.index(False) + 1 if False in said else len(said)
            truths += said[:until]
            labels += [label for _, label in steps[:until]]
    measured = told(np.array(labels) - 0.5, np.array(truths, dtype=bool))
    names = {"accuracy": "accuracy/steps", "auc": "auc/steps", "right": "truth/steps"}
    return {names[name]: value for name, value in measured.items()}


def _labelled(
    number: int, row: Sample, ends: Sequence[Sequence[int]], right: Mapping[Beginning, float], verify: Any
) -> Solved:
    problem = samples.problem(row)
    steps: list[Labelled] = []
    for text, places in zip(row["completions"], ends, strict=True):
        answer = float(verify(problem, problem.begun + text))
        steps.append([*((end, right[number, text[:end]]) for end in places), (len(text), answer)])
    return {**row, "steps": steps}


def _counts(solved: Sequence[Solved]) -> dict[str, float]:
    """Return the numbers of problems, solutions and steps, and the mean labels of steps and of answers."""
    labels = [label for row in solved for steps in row["steps"] for _, label in steps[:-1]]
    answers = [steps[-1][1] for row in solved for steps in row["steps"]]
    return {
        "problems": float(len(solved)),
        "solutions": float(len(answers)),
        "steps": float(len(labels)),
        "right/steps": sum(labels) / len(labels) if labels else 0.0,
        "right/answers": sum(answers) / len(answers) if answers else 0.0,
    }
