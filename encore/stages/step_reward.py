"""The part of stage `reward_model` for the key `labels`: a process or an outcome reward model.

A head learns each label at its position. With `outcome` the label is at the end of a completion, by its
answer (Cobbe et al. 2021). With `steps` there are also labels at the end of every step (Lightman et al.
2023), by a world's step verifier or by a stage `label_steps`. The completion itself is the last step. As in
Lightman et al. (§2.6), a process reward model learns a world's steps up to the first wrong step, and none
after it. Prompts are held out by their hash.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from trl import RewardConfig

from encore.data import preferences, samples, step_labels, token_ids
from encore.errors import UserError
from encore.learning.fit import clean, fit
from encore.learning.reward_model import Solution, StepReward
from encore.models import reward_model
from encore.models.experts import idle
from encore.models.lora import parameters
from encore.objectives.process_supervision import Steps
from encore.recipe.kinds import RewardModelStage
from encore.rewards import verifiers
from encore.rewards.step_rewards import locator, reader, told
from encore.rewards.verifiers import Verifier
from encore.runtime import curves, health, sentinel
from encore.stages.job import Job, task_of
from encore.stages.outcome import Outcome
from encore.stages.policy import loading_options, locate_policy, positions
from encore.stages.trainer_config import arguments, batch_size, check_evaluation
from encore.worlds.protocol import World

FORMULA = "6 x parameters x tokens of prompts and completions (forward and backward)"
VALIDATION = 0.1  # share of the prompts that are held out
CHANCE = 0.55  # probability to score a right label above a wrong one; below it, almost nothing was learnt


def run(stage: RewardModelStage, job: Job) -> Outcome:
    """Train and save the reward model."""
    rows, label, chosen = _labelled(stage, job.inputs["data"])
    source, tokenizer = locate_policy(stage, job.inputs)
    args = arguments(RewardConfig, stage, job.workdir / "member0", job.seed, save_steps=100)
    texts = sorted({text for row in rows for text in (row["prompt"], *row["completions"])})
    checks = health.stop_at_errors([health.known_tokens(tokenizer, texts, "sample")])
    every = {
        name: solutions(some, label(tokenizer), tokenizer, chosen)
        for name, some in _split(rows, stage.problems).items()
    }
    kept = {
        name: [
            solution
            for solution in some
            if args.max_length is None or len(solution["ids"]) <= args.max_length
        ]
        for name, some in every.items()
    }
    long = sum(len(every[name]) - len(kept[name]) for name in kept)
    checks += _checks(kept, long, args)
    model = reward_model.from_policy(source, tokenizer, args.seed, **loading_options(stage, args))
    longest = max(len(solution["ids"]) for some in kept.values() for solution in some)
    checks += health.stop_at_errors([health.context(longest, 0, positions(model))])
    trainer = StepReward(
        model,
        args=args,
        train_dataset=Dataset.from_list(kept["train"]),
        eval_dataset=Dataset.from_list(kept["validation"]) if args.eval_strategy != "no" else None,
        processing_class=tokenizer,
    )
    done = fit(trainer, job.progress)
    partly = reward_model.begin(job.workdir / "final")
    reward_model.add(partly, 0, model)
    reward_model.finish(partly, tokenizer, [0.0], [1.0], job.workdir / "final")

    curve = curves.deterministic(curves.rows(done.history))
    metrics = {
        **curves.scalars(curve),
        **{f"completions/{name}": float(len(some)) for name, some in kept.items()},
        **measured(model, kept["validation"]),
        "skipped/long": float(long),
        "parameters": float(parameters(model)),
    }
    return Outcome(
        metrics=metrics,
        health=checks + _above_chance(metrics),
        fit=done,
        flops_a_token=6 * (parameters(model) - idle(model)),
        formula=FORMULA,
        curve=curve,
        clean=lambda: _clean(job.workdir / "member0"),
    )


def _labelled(
    stage: RewardModelStage, data: Path
) -> tuple[Sequence[samples.Sample], Callable[[Any], "Labeller"], Callable[[Steps], Steps]]:
    """Return the rows of `data`, and two functions that say what is learnt from them.

    The first makes a labeller of the rows from a tokenizer. The second chooses which of a completion's
    labelled steps are learnt. Raises UserError if there is no verifier for the steps.
    """
    outcome = stage.labels == "outcome"
    if (
        sentinel.read_sentinel(data).get("kind") == "label_steps"
    ):  # all labelled steps are learnt, because a rollout may repair a wrong step
        return step_labels.load(data), as_given, _last if outcome else lambda steps: steps
    task = task_of(data)
    world, chosen = task.make_world(), _last if outcome else until_wrong
    if world is not None:
        return samples.load(data), partial(by_world, world), chosen
    if not outcome:
        raise UserError(f"labels: steps: {data} has no world with a step verifier that could label it")
    return samples.load(data), lambda tokenizer: by_answer(verifiers.of_task(task)), chosen


def _split(rows: Sequence[samples.Sample], problems: int | None) -> dict[str, list[samples.Sample]]:
    """Return split -> rows; of the training rows only the first `problems`. Raises UserError if too few."""
    split: dict[str, list[samples.Sample]] = {name: [] for name in preferences.SPLITS}
    for row in rows:
        split[preferences.split_of_prompt(row["prompt"], VALIDATION)].append(row)
    if problems is not None and problems > len(split["train"]):
        raise UserError(
            f"problems: {problems} asked, but there are {len(split['train'])} prompts to train on"
        )
    return split | {"train": split["train"][:problems]}


def _checks(kept: Mapping[str, Sequence[Solution]], long: int, args: Any) -> list[health.Check]:
    """Return the checks of the numbers of kept and of too long completions. Raises UserError at an error."""
    limit = args.max_length
    message = f"{long} completions are longer than max_length {limit} with their prompts: they are skipped"
    checks = health.stop_at_errors(
        [
            health.enough(len(kept["train"]), batch_size(args), "completions"),
            health.make_check("long", long == 0, long, 0, message),
        ]
    )
    check_evaluation(args, len(kept["validation"]), "held-out completions")
    return checks


Labeller = Callable[[Any, int, list[int]], Steps]  # (row, number of a completion, its ids) -> its steps


def by_world(world: World, tokenizer: Any) -> Labeller:
    """Return a labeller that labels steps and answers with the world's verifiers."""
    read = reader(world, tokenizer, special=True)

    def label(row: samples.Sample, number: int, ids: list[int]) -> Steps:
        problem, text = samples.problem(row), row["completions"][number]
        return read(problem, text, ids, float(world.verify(problem, problem.begun + text)))

    return label


def by_answer(verify: Verifier) -> Labeller:
    """Return a labeller that labels only the whole completion, by the verifier of the data set's answers."""

    def label(row: samples.Sample, number: int, ids: list[int]) -> Steps:
        problem = samples.problem(row)
        return [(len(ids) - 1, float(verify(problem, problem.begun + row["completions"][number])))]

    return label


def as_given(tokenizer: Any) -> Labeller:
    """Return a labeller that takes the labels that the rows of a stage `label_steps` already have."""
    locate = locator(tokenizer, special=True)

    def label(row: step_labels.Solved, number: int, ids: list[int]) -> Steps:
        labelled = row["steps"][number]
        places = locate(row["completions"][number], ids, [end for end, _ in labelled[:-1]])
        return [*zip([*places, len(ids) - 1], (right for _, right in labelled), strict=True)]

    return label


def solutions(
    rows: Sequence[samples.Sample], label: Labeller, tokenizer: Any, chosen: Callable[[Steps], Steps]
) -> list[Solution]:
    """Return each completion of `rows` with its prompt, as token ids, and its labels.

    There is a label at the last token of each step that `chosen` keeps.
    """
    made: list[Solution] = []
    prompts = token_ids.prompt_ids([row["prompt"] for row in rows], tokenizer)
    for row, prompt in zip(rows, prompts, strict=True):
        for number, ids in enumerate(token_ids.reply_ids(row["completions"], row["truncated"], tokenizer)):
            if not ids:  # the completion was cut before its first token
                continue
            steps = chosen(label(row, number, ids))
            made.append(
                {
                    "ids": [*prompt, *ids],
                    "places": [len(prompt) + place for place, _ in steps],
                    "labels": [right for _, right in steps],
                }
            )
    return made


def until_wrong(steps: Steps) -> Steps:
    """Return the steps up to the first wrong one; the answer is the last step."""
    wrong = next((i for i, (_, label) in enumerate(steps) if label == 0), len(steps))
    return steps[: wrong + 1]


def _last(steps: Steps) -> Steps:
    """Return the answer alone, which is the last step."""
    return steps[-1:]


def measured(model: Any, held_out: Sequence[Solution]) -> dict[str, float]:
    """Measure how well held-out labels are predicted.

    `accuracy` is the share of labels that the score's sign predicts; `right` is the share of right steps;
    `auc` is the probability that a right step scores above a wrong one (a tie counts half), if there are
    both. The names end in `/validation` for all labels, and in `/steps` for those before the answer.
    """
    prefixes = [solution["ids"][: place + 1] for solution in held_out for place in solution["places"]]
    if not prefixes:
        return {}
    scores = reward_model.raw_scores(model, prefixes).double().numpy()
    right = np.array([label > 0.5 for solution in held_out for label in solution["labels"]])
    step = np.array(
        [place < len(solution["ids"]) - 1 for solution in held_out for place in solution["places"]]
    )
    parts = {"validation": np.ones_like(step), "steps": step}
    return {
        f"{metric}/{name}": value
        for name, part in parts.items()
        for metric, value in told(scores[part], right[part]).items()
    }


def _above_chance(metrics: dict[str, float]) -> list[health.Check]:
    if "auc/validation" not in metrics:
        return []
    value = metrics["auc/validation"]
    text = f"a right one of the held-out labels scores above a wrong one with chance {value:.1%}"
    return [health.make_check("chance", value > CHANCE, value, CHANCE, text)]


def _clean(folder: Path) -> None:
    """Remove the training state."""
    clean(folder)
    folder.rmdir()
