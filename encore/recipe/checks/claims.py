"""What claims and published numbers compare: that each place exists and can have the metric.

A place is `arm/checkpoint`, with a metric of an evaluation task (`heldout/accuracy`), or `arm/stage`, with a
final number of training. Which curves a stage logs is known only once it runs, so only the form of their
names is checked; a claim whose number is then missing stays untested. `frontier/<name>` is a place too: each
of the frontier's own must be a checkpoint whose task scores kl and what is asked at a KL.

A claim without `paper` is taken as one of the recipe's paper, so its source must not name another origin.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from encore.errors import Mistakes, UserError, known
from encore.recipe.data_sets import is_data_set
from encore.recipe.frontiers import name_of
from encore.recipe.graph import Graph, Node
from encore.recipe.metric_names import (
    BY_DIFFICULTY,
    COVERED,
    FAMILIAR,
    FORMS,
    METRICS,
    OF_LM_EVAL,
    OF_TOOL,
    ON_FRONTIER,
    PAIRED,
    SCORED,
    VERIFIED,
    best_of,
    of_training,
)
from encore.recipe.recipe import Recipe

OURS = re.compile(r"\b(ours|said here)\b", re.IGNORECASE)
PAPER = re.compile(r"arXiv \d{4}\.\d{4,5}")  # an origin where a source begins with it, later maybe a rival


def check(recipe: Recipe) -> None:
    """Every claim at each of its scales, every published number that names a place, and `coverage`."""
    mistakes = Mistakes()
    if (base := recipe.spec.get("coverage")) is not None:
        every = [
            recipe.checkpoints(scale, arm) for scale in recipe.spec["scales"] for arm in recipe.arms(scale)
        ]
        known(
            "coverage", [base], list(dict.fromkeys(name for names in every for name in names)), "checkpoint"
        )
    for claim in recipe.spec.get("claims", []):
        with mistakes.gather():
            _check_claim(recipe, claim)
    for index, row in enumerate(recipe.spec.get("published", [])):
        with mistakes.gather():
            _check_published(recipe, f"published[{index}]", row)
    mistakes.tell()


def _check_claim(recipe: Recipe, claim: Mapping) -> None:
    origin, url = _origin(claim["source"]), recipe.spec["url"]
    if "paper" not in claim and origin and origin.removeprefix("arXiv ") not in url:
        raise UserError(
            f'claims.{claim["id"]}.paper: missing; the source names "{origin}", so the claim is not '
            f"one of {url}; expected the arXiv number or the address of its paper, or ours"
        )
    other = "against_metric" if "against_metric" in claim else "metric"
    for scale in claim.get("scales", recipe.spec["scales"]):
        for key, metric in (("of", "metric"), ("against", other)):
            if key in claim:
                check_place(recipe, scale, f"claims.{claim['id']}.test", claim, key, metric)


def _origin(source: str) -> str:
    """What a source names as the origin of its claim: ours, or an arXiv number; empty where it names none."""
    named = OURS.search(source) or PAPER.match(source)
    return named[0] if named else ""


def check_place(
    recipe: Recipe, scale: str, path: str, row: Mapping[str, str], key: str, metric_key: str
) -> None:
    """That row[key], a place, exists at the scale and can be measured by row[metric_key]."""
    place, metric = row[key], row[metric_key]
    if (frontier := name_of(place)) is not None:
        known(f"{path}.{key}", [frontier], list(recipe.spec.get("frontiers", {})), "frontier")
        return _check_frontier(recipe, scale, f"{path}.{metric_key}", frontier, metric)
    arm, node = _arm_and_node(recipe, scale, f"{path}.{key}", place)
    checkpoints, stages = recipe.checkpoints(scale, arm), recipe.stages(scale, arm)
    known(f"{path}.{key}", [node], [*checkpoints, *stages], "checkpoint or stage")
    if node in stages and of_training(metric):
        return
    if node in checkpoints and of_training(metric):
        raise UserError(
            f'{path}.{metric_key}: "{metric}" is a number of training, and {place} a checkpoint; '
            f"its stages: {', '.join(stages)}"
        )
    if node in checkpoints:
        tasks = _tasks(recipe, scale, arm, node)
        base = recipe.spec.get("coverage")
        compared = node != base and base in checkpoints
        _check_evaluated(f"{path}.{metric_key}", metric, tasks, f"{place} (scale {scale})", compared)
    else:
        forms = f"{', '.join(FORMS[:-1])} or {FORMS[-1]}"
        raise UserError(
            f'{path}.{metric_key}: expected a final number of stage {place}: {forms}, got "{metric}"'
        )


def check_checkpoint(recipe: Recipe, scale: str, path: str, place: str) -> tuple[str, str]:
    """Arm and checkpoint of a place; UserError where it is no evaluated checkpoint at the scale."""
    arm, checkpoint = _arm_and_node(recipe, scale, path, place)
    known(path, [checkpoint], recipe.checkpoints(scale, arm), f"checkpoint of arm {arm}")
    return arm, checkpoint


def _arm_and_node(recipe: Recipe, scale: str, path: str, place: str) -> tuple[str, str]:
    """The parts of a place; UserError where its arm does not exist at the scale."""
    arm, slash, node = place.partition("/")
    if not slash:
        raise UserError(f'{path}: expected arm/checkpoint or arm/stage, got "{place}"')
    if arm in recipe.spec["arms"] and arm not in recipe.arms(scale):
        valid = ", ".join(recipe.arms(scale))
        raise UserError(f'{path}: arm "{arm}" does not exist at scale {scale}; there are: {valid}')
    known(path, [arm], recipe.arms(scale), "arm")
    return arm, node


def _tasks(recipe: Recipe, scale: str, arm: str, checkpoint: str) -> dict[str, dict]:
    evaluated = Node(recipe.name, scale, arm, 0, checkpoint, "eval")
    return Graph({recipe.name: recipe}).config(evaluated)["tasks"]


def _check_frontier(recipe: Recipe, scale: str, path: str, frontier: str, metric: str) -> None:
    """That each place of a frontier exists at the scale, and has the scores that the metric is made of."""
    match = ON_FRONTIER.fullmatch(metric)
    if not match:
        forms = "TASK/gold_at_kl/NATS, TASK/proxy_at_kl/NATS or TASK/accuracy_at_kl/NATS"
        raise UserError(f'{path}: expected {forms} of a frontier, got "{metric}"')
    task, score, _ = match.groups()
    for index, place in enumerate(recipe.spec["frontiers"][frontier]):
        where = f"{place} (scale {scale})"
        arm, checkpoint = check_checkpoint(recipe, scale, f"frontiers.{frontier}[{index}]", place)
        tasks = _tasks(recipe, scale, arm, checkpoint)
        known(path, [task], list(tasks), f"task at {where}")
        measured = [*tasks[task].get("score", []), *(("accuracy",) if _verified(tasks[task]) else ())]
        for name in ("kl", score):
            if name not in measured:
                has = ", ".join(measured) or "none"
                raise UserError(f"{path}: task {task} has no score {name} at {where}; it has: {has}")


def _verified(task: Mapping) -> bool:
    """Whether a task can tell right from wrong."""
    problems = task.get("task", {})
    return not is_data_set(problems) or "verifier" in problems


def _check_evaluated(
    path: str, metric: str, tasks: Mapping[str, Mapping], where: str, compared: bool
) -> None:
    """That one of the tasks has the metric; `compared`: with the checkpoint that `coverage` names."""
    task, _, name = metric.partition("/")
    known(path, [task], list(tasks), f"task at {where}")
    scores, verified = tasks[task].get("score", []), _verified(tasks[task])
    drawn, of_lm_eval = "k" in tasks[task], "lm_eval" in tasks[task]
    metrics = [*METRICS, *(VERIFIED if verified else ())] if drawn else ["accuracy"]
    metrics += OF_TOOL if "tool" in tasks[task] else ()
    metrics += [
        *(metric for score in scores for metric in SCORED[score]),
        *([OF_LM_EVAL] if of_lm_eval else ()),
    ]
    if compared and verified and drawn:
        metrics += [*COVERED, *([FAMILIAR] if "perplexity" in scores else ())]
    families = [best for _, _, best in best_of(scores, verified)]
    families += ("pass", "maj") if verified else ()
    metrics += [f"{family}@{k}" for family in families for k in tasks[task].get("k", [])]
    levelled = verified and not of_lm_eval
    metrics += [f"{m}/difficulty=N" for m in BY_DIFFICULTY] if levelled else []
    if not (levelled and re.fullmatch(rf"({'|'.join(BY_DIFFICULTY)})/difficulty=\d+", name)):
        known(path, [name], metrics, "metric")


def _check_published(recipe: Recipe, path: str, row: Mapping) -> None:
    if "of" in row or "against" in row:
        return _check_pair(recipe, path, row)
    if ("metric" in row) != ("at" in row):
        raise UserError(f"{path}: metric and at go together")
    if "at" not in row:
        return
    arm = row["at"].partition("/")[0]
    known(f"{path}.at", [arm], list(recipe.spec["arms"]), "arm")
    known(f"{path}.scales", row.get("scales", []), list(recipe.spec["scales"]), "scale")
    scales = row.get("scales", recipe.spec["scales"])
    _check_at_one(scales, lambda scale: check_place(recipe, scale, path, row, "at", "metric"))


def _check_pair(recipe: Recipe, path: str, row: Mapping) -> None:
    """A published preference: `of` and `against` are policies, both evaluated at one of its scales."""
    if absent := [key for key in ("of", "against", "metric") if key not in row]:
        raise UserError(f"{path}.{absent[0]}: missing; of, against and metric go together")
    if "at" in row:
        raise UserError(f"{path}.at: of and against are given too; remove it")
    known(f"{path}.metric", [row["metric"]], list(PAIRED), "metric of two policies")
    known(f"{path}.scales", row.get("scales", []), list(recipe.spec["scales"]), "scale")

    def check_policies(scale: str) -> None:
        for key in ("of", "against"):
            arm, _, checkpoint = row[key].partition("/")
            known(f"{path}.{key}", [arm], recipe.arms(scale), f"arm at scale {scale}")
            known(f"{path}.{key}", [checkpoint], recipe.checkpoints(scale, arm), f"checkpoint of arm {arm}")

    _check_at_one(row.get("scales", recipe.spec["scales"]), check_policies)


def _check_at_one(scales: Iterable[str], check_at: Callable[[str], None]) -> None:
    """That the check passes at one of the scales at least; else its first mistake."""
    mistakes = []
    for scale in scales:
        try:
            return check_at(scale)
        except UserError as mistake:
            mistakes.append(mistake)
    raise mistakes[0]
