"""Stage `label`: samples ranked by a labeller, or the rankings of a Hub dataset.

    python -m encore.stages label --config '{"by": "annotator", "labeller": {"agreement": 0.73}}' \\
        --input data=results/…/metrics.json …

`by` names the labeller:

    gold, annotator, judge   labellers of the samples' world (encore/labels/annotators.py)
    verifier                 the verifier of the samples' task: right or wrong
    reward_model             the input `reward_model` (encore/labels/model_judges.py)
    language_model           `labeller.model`, or an input policy, asked which of two replies is better
    self                     the implicit reward beta log(policy/reference) (Rafailov et al. 2023, Eq. 5)
    dataset                  the rankings of a Hub dataset

The three labellers that are models can also label preferences anew. The product is preferences
(encore/data/preferences.py) or, with `keep`, demonstrations: the best completion of each prompt, or all right
completions. A killed run starts again.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encore.data import demonstrations, hub_preferences, preferences, samples
from encore.data.preferences import Preference
from encore.data.samples import Sample
from encore.errors import UserError
from encore.labels import annotators, model_judges
from encore.labels.annotators import Labels
from encore.recipe.base import present
from encore.recipe.kinds import LabelStage
from encore.recipe.kinds import label as labelling
from encore.rewards import verifiers
from encore.runtime import health, sentinel
from encore.stages.job import Job, task_of
from encore.stages.outcome import Outcome, untrained

FORMULA = "2 x parameters x tokens of prompts and completions, of each model that scores"
CHANCE = 0.55  # share of pairs ranked as gold does; below it, there is almost nothing to learn
Row = dict[str, Any]


def run(stage: LabelStage, job: Job) -> Outcome:
    """Label the samples or preferences, and save the labelled rows."""
    began = time.perf_counter()
    metrics: dict[str, float] = {}
    checks: list[health.Check] = []
    tokens, parameters = 0, 0
    if stage.by == "dataset":
        template = stage.template or "{question}"
        ranked = hub_preferences.of_task(present(stage.task), template, stage.held_out, stage.problems)
        rows, scores = samples.of_preferences(ranked), [row["scores"] for row in ranked]
    else:
        rows, world, earlier = _read_samples(stage.by, job.inputs["data"])
        labels, tokens, parameters = score(stage, job, rows, world)
        gold = annotators.rewarded(rows, world.rewards["gold"]) if world and "gold" in world.rewards else None
        metrics = annotators.quality(rows, labels, gold) | labels.fitted
        # alignment in the sense of RLAIF: how often the new label agrees with the earlier one
        if earlier is not None:
            metrics["accuracy/given"] = annotators.quality(rows, labels, earlier).get("accuracy", 0.0)
        if "accuracy" in metrics:
            checks.append(_better_than_chance(metrics["accuracy"], int(metrics["pairs"])))
        scores = labels.scores
        ranked = as_preferences(rows, scores, stage.held_out)
    final = job.workdir / "final"
    if stage.keep != "preferences":
        chosen, skipped = as_demonstrations(rows, scores, stage.keep)
        if not chosen:
            raise UserError(f"keep: {stage.keep}: none of {len(rows)} prompts has a completion to keep")
        demonstrations.save(chosen, final)
        metrics |= skipped | {"kept": len(chosen), "problems": len(rows)}
    else:
        kept, counts = preferences.usable(ranked)
        checks += health.stop_at_errors(preferences.checks(kept, counts))
        preferences.save(kept, final)
        held_out = sum(row["split"] == "validation" for row in kept)
        metrics |= preferences.metrics(counts)
        metrics |= {"problems": len(kept), "problems/validation": held_out}
        metrics["pairs"] = len(preferences.pairs(kept))
    return untrained(metrics, checks, tokens, parameters, FORMULA, began)


def _read_samples(by: str, place: Path) -> tuple[list[Sample], Any, annotators.Scores | None]:
    """Return the samples to label, their world (None for Hub data), and their earlier scores.

    The earlier scores are None unless the samples are preferences that are labelled anew.
    """
    upstream = sentinel.read_sentinel(place)
    if upstream.get("kind") == "label":
        labelling.check_relabels(by, str(place))
        labelled = preferences.load(place)
        return samples.of_preferences(labelled), None, [row["scores"] for row in labelled]
    rows = samples.load(place)
    world = task_of(place).make_world()
    labelling.check_world(by, world, str(place))
    return rows, world, None


def score(stage: LabelStage, job: Job, rows: Sequence[Sample], world: Any) -> tuple[Labels, int, int]:
    """Return the labeller's scores, the number of tokens it read, and its number of parameters."""
    by, dials, inputs = stage.by, stage.labeller, job.inputs
    if by in labelling.REWARDS:
        gold = annotators.rewarded(rows, world.rewards["gold"])
        if by == "gold":
            return Labels(annotators.by_rank(gold)), 0, 0
        if by == "annotator":
            return annotators.annotated(gold, dials, job.seed), 0, 0
        judge_scores = annotators.rewarded(rows, world.rewards["judge"])
        return annotators.ai_judge(gold, judge_scores, rows, dials, job.seed), 0, 0
    if by == "verifier":
        verify = verifiers.of_task(task_of(inputs["data"]))
        return Labels(annotators.rewarded(rows, verify)), 0, 0
    if by == "reward_model":
        return model_judges.reward_model(rows, inputs["reward_model"], dials.ensemble)
    if by == "self":
        return model_judges.implicit(rows, inputs["policy"], inputs["reference"], dials.beta)
    return model_judges.language_model(rows, dials, inputs.get("policy"))


def as_preferences(rows: Sequence[Sample], scores: annotators.Scores, validation: float) -> list[Preference]:
    """Return rows of preferences: samples with their scores, rankings and splits."""
    return [
        {
            "prompt": row["prompt"],
            "question": row["question"],
            "answer": row["answer"],
            "difficulty": row["difficulty"],
            "truncated": row["truncated"],
            "responses": row["completions"],
            "scores": values,
            "ranking": preferences.by_score(values),
            "split": preferences.split_of_prompt(row["prompt"], validation),
        }
        for row, values in zip(rows, scores, strict=True)
    ]


def as_demonstrations(
    rows: Sequence[Sample], scores: annotators.Scores, keep: str
) -> tuple[list[Row], dict[str, float]]:
    """Return the demonstrations, and the numbers of skipped completions by reason.

    With `keep` "best", the demonstrations are the best completion of each prompt; otherwise all right
    completions. A completion is skipped if it is empty, was cut at the cap or has no finite score.
    """
    kept, skipped = [], dict.fromkeys(("skipped/empty", "skipped/truncated", "skipped/nan"), 0.0)
    for row, values in zip(rows, scores, strict=True):
        good: dict[str, float] = {}
        for text, cut, value in zip(row["completions"], row["truncated"], values, strict=True):
            if not text.strip():
                skipped["skipped/empty"] += 1
            elif cut:
                skipped["skipped/truncated"] += 1
            elif value - value != 0:  # true if it is NaN or infinite
                skipped["skipped/nan"] += 1
            else:
                good.setdefault(text, value)
        texts = [text for text, value in good.items() if value == 1.0]
        if keep == "best":
            texts = [max(good, key=lambda text: good[text])] if good else []
        kept += [{**row, "completion": text} for text in texts]
    return kept, skipped


def _better_than_chance(accuracy: float, pairs: int) -> health.Check:
    message = f"{accuracy:.1%} of the pairs, {pairs} in all, are ranked as gold ranks them"
    return health.make_check("accuracy", accuracy >= CHANCE, accuracy, CHANCE, message)
