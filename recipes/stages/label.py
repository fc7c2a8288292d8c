"""Stage `label`: samples ranked by a labeller, or the rankings of a Hub dataset.

    python -m recipes.stages.label --config '{"by": "annotator", "labeller": {"agreement": 0.73}}' \\
        --input data=results/…/metrics.json …

`by` names the labeller: gold, annotator and judge of the samples' world (recipes/labels.py), reward_model,
self (the implicit reward beta log(policy/reference); Rafailov et al. 2023, Eq. 5), verifier, language_model
(recipes/scorers.py), or dataset. The three that are models can also rank preferences once more. Its product
are preferences (recipes/preferences.py) or, with `keep`, demonstrations: best of each prompt, or all that are
right. It makes no step and starts again where killed.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipes import worlds
from recipes.data import demonstrations, hub_preferences, preferences, samples
from recipes.errors import UserError
from recipes.labels import annotators
from recipes.labels.annotators import Labels
from recipes.runtime import curves, files, health, provenance, sentinel
from recipes.runtime.progress import Progress
from recipes.spec.checks import label as label_checks
from recipes.stages import cli

FORMULA = "2 x parameters x tokens of prompts and completions, of each model that scores"
VALIDATION = 0.1
CHANCE = 0.55  # of the pairs ranked as gold does; below, there is next to nothing to learn
Row = dict[str, Any]


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Label, and write the rows to `workdir`/final."""
    started, began = provenance.now(), time.perf_counter()
    label_checks.check({**config, "needs": inputs})
    by, keep = config["by"], config.get("keep", "preferences")
    measured: dict[str, float] = {}
    checks: list[health.Check] = []
    tokens, parameters = 0, 0
    if by == "dataset":
        template = config.get("template", "{question}")
        validation = config.get("validation", VALIDATION)
        labelled = hub_preferences.comparisons(config["task"], template, validation, config.get("problems"))
    else:
        rows, world, given = read(by, inputs["data"])
        made, tokens, parameters = score(config, inputs, rows, world, seed)
        gold = annotators.rewarded(rows, world.rewards["gold"]) if world and "gold" in world.rewards else None
        measured = annotators.quality(rows, made, gold) | made.found
        if given is not None:  # RLAIF's alignment: how often the label is the one that was given
            measured["accuracy/given"] = annotators.quality(rows, made, given).get("accuracy", 0.0)
        if "accuracy" in measured:
            checks.append(better_than_chance(measured["accuracy"], int(measured["pairs"])))
        if keep != "preferences":
            chosen, skipped = demonstrated(rows, made.scores, keep)
            if not chosen:
                raise UserError(f"keep: {keep}: none of {len(rows)} prompts has a completion to keep")
            demonstrations.save(chosen, workdir / "final")
            measured |= skipped | {"kept": len(chosen), "problems": len(rows)}
        else:
            labelled = joined(rows, made.scores, config.get("validation", VALIDATION))
    if keep == "preferences":
        kept, counts = preferences.usable(labelled)
        checks += health.stop_at_errors(preferences.checks(kept, counts))
        preferences.save(kept, workdir / "final")
        held_out = sum(row["split"] == "validation" for row in kept)
        measured |= preferences.metrics(counts)
        measured |= {"problems": len(kept), "problems/validation": held_out}
        measured["pairs"] = len(preferences.pairs(kept))
    files.write(out.with_name("curve.csv"), curves.text([]))  # nothing is learnt
    done = provenance.Fit([], 0, tokens, time.perf_counter() - began, 0)
    return {
        "metrics": measured,
        "health": checks,
        "provenance": provenance.record(started, done, 2 * parameters, FORMULA),
        "clean": lambda: None,
    }


def read(by: str, place: Path) -> tuple[list[Row], Any, annotators.Scores | None]:
    """Samples, their world (None: of the Hub) and, of preferences labelled once more, their scores."""
    upstream = sentinel.read(place)
    if upstream.get("kind") == "label":
        label_checks.check_relabels(by, str(place))
        given = preferences.load(place)
        return samples.of_preferences(given), None, [row["scores"] for row in given]
    rows = samples.load(place)
    world = worlds.of_task(upstream["config"]["task"])
    label_checks.check_world(by, world, str(place))
    return rows, world, None


def score(
    config: dict[str, Any], inputs: dict[str, Path], rows: Sequence[Row], world: Any, seed: int
) -> tuple[Labels, int, int]:
    """The labeller's scores, and the tokens and parameters that they took."""
    by, dials = config["by"], config.get("labeller", {})
    if by in label_checks.REWARDS:
        gold = annotators.rewarded(rows, world.rewards["gold"])
        if by == "gold":
            return Labels(annotators.by_rank(gold)), 0, 0
        if by == "annotator":
            return annotators.annotated(gold, dials, seed), 0, 0
        own = annotators.rewarded(rows, world.rewards["judge"])
        return annotators.judged(gold, own, rows, dials, seed), 0, 0
    if by == "verifier":
        from recipes.rewards.rules import math_verifier

        return Labels(annotators.rewarded(rows, world.verify if world else math_verifier())), 0, 0
    from recipes.labels import model_judges

    if by == "reward_model":
        return model_judges.reward_model(rows, inputs["reward_model"], dials.get("ensemble", "mean"))
    if by == "self":
        return model_judges.implicit(rows, inputs["policy"], inputs["reference"], dials.get("beta", 1.0))
    return model_judges.language_model(rows, dials)


def joined(rows: Sequence[Row], scores: annotators.Scores, validation: float) -> list[Row]:
    """Rows of preferences: samples with their scores, and the split of their prompts."""
    return [
        {
            **{key: row[key] for key in ("prompt", "question", "answer", "difficulty", "truncated")},
            "responses": row["completions"],
            "scores": values,
            "ranking": preferences.by_score(values),
            "split": preferences.split_of(row["prompt"], validation),
        }
        for row, values in zip(rows, scores, strict=True)
    ]


def demonstrated(
    rows: Sequence[Row], scores: annotators.Scores, keep: str
) -> tuple[list[Row], dict[str, float]]:
    """Demonstrations: the best completion of each prompt, or all distinct right ones; and what is left out.

    Never one that is empty, was cut at the cap or has no finite score.
    """
    kept, skipped = [], dict.fromkeys(("skipped/empty", "skipped/truncated", "skipped/nan"), 0.0)
    for row, values in zip(rows, scores, strict=True):
        good: dict[str, float] = {}
        for text, cut, value in zip(row["completions"], row["truncated"], values, strict=True):
            if not text.strip():
                skipped["skipped/empty"] += 1
            elif cut:
                skipped["skipped/truncated"] += 1
            elif value - value != 0:  # neither NaN nor infinite
                skipped["skipped/nan"] += 1
            else:
                good.setdefault(text, value)
        texts = [text for text, value in good.items() if value == 1.0]
        if keep == "best":
            texts = [max(good, key=lambda text: good[text])] if good else []
        kept += [row | {"completion": text} for text in texts]
    return kept, skipped


def better_than_chance(accuracy: float, pairs: int) -> health.Check:
    message = f"{accuracy:.1%} of the pairs, {pairs} in all, are ranked as gold ranks them"
    return health.check("accuracy", accuracy >= CHANCE, accuracy, CHANCE, message, "warning")


if __name__ == "__main__":
    sys.exit(cli.main("label", run))
