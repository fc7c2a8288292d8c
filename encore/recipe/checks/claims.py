"""Checks of what claims, gates and published numbers compare: each place exists and can have the metric.

Which curves a stage logs is known only when it runs, so only the form of their names is checked; a claim
whose number is then missing stays untested. Each place of a frontier must be a checkpoint with a task that
scores kl and the score that is compared at equal KL, or beside a task that scores forward_kl.

The `paper` of a claim must be the one that its `source` names.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from encore.errors import Mistakes, UserError, known
from encore.recipe.claims import OURS, Claim, Comparison, Gate, Published, Scaled, frontier
from encore.recipe.eval_tasks import EvalTask
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

OF_OURS = re.compile(r"\b(ours|said here)\b", re.IGNORECASE)
PAPER = re.compile(r"arXiv (\d{4}\.\d{4,5})")  # beginning of the source of a paper's claim
FEWEST = 2  # smallest number of places of a frontier between which a score can be interpolated


def check_claims(recipe: Recipe) -> None:
    """Check all claims at their scales, published numbers that name a place, `coverage`, expected curves.

    If the claims are correct, check the recipe's gates; if the gates are correct too, check its frontiers.
    """
    mistakes, document = Mistakes(), recipe.document
    if document.coverage is not None:
        arms = [(scale, arm) for scale in recipe.scales for arm in recipe.arms(scale)]
        names = dict.fromkeys(name for place in arms for name in recipe.checkpoints(*place))
        known("coverage", [document.coverage], list(names), "checkpoint")
    for claim in document.claims.values():
        with mistakes.gather():
            _check_claim(recipe, claim)
    for index, number in enumerate(document.published):
        with mistakes.gather():
            _check_published(recipe, f"published[{index}]", number)
    for scale, at in document.scales.items():
        if at.expected is not None:
            path, (arm, _, stage) = f"scales.{scale}.expected.of", at.expected.of.partition("/")
            with mistakes.gather():
                known(path, [arm], recipe.arms(scale), f"arm at scale {scale}")
                known(path, [stage], list(recipe.stages(scale, arm)), f"stage of arm {arm}")
    mistakes.tell()
    _check_gates(recipe)
    _check_frontiers(recipe)


def _scales(recipe: Recipe, part: Scaled) -> list[str]:
    """Return the scales of a claim or a published number."""
    return recipe.scales if part.scales is None else list(part.scales)


def _check_claim(recipe: Recipe, claim: Claim) -> None:
    origin = _origin(claim.source)
    if origin and origin != claim.paper:
        raise UserError(
            f'claims.{claim.id}.paper: expected "{origin}", as its source says, got "{claim.paper}"'
        )
    for scale in _scales(recipe, claim):
        _check_sides(recipe, scale, f"claims.{claim.id}.test", claim.test)


def _origin(source: str) -> str:
    """Return the origin that a source names for its claim: `ours`, an arXiv number, or an empty text."""
    if OF_OURS.search(source):
        return OURS
    named = PAPER.match(source)
    return named[1] if named else ""


def _check_gates(recipe: Recipe) -> None:
    """Check the needs of every claim, and check every gate at each scale of the claims that need it."""
    gates = recipe.document.gates
    # gate -> the scales at which a claim needs it
    scales: dict[str, set[str]] = {name: set() for name in gates}
    for claim in recipe.document.claims.values():
        for need in claim.needs:
            known(f"claims.{claim.id}.needs", [need.gate], list(gates), "gate")
            if need.relation == "within" and not gates[need.gate].target:
                raise UserError(
                    f"gates.{need.gate}.target: expected a number other than 0, "
                    f"because claims.{claim.id} needs the gate within {100 * need.bound:g}% of it"
                )
            scales[need.gate] |= set(_scales(recipe, claim))
    for name, gate in gates.items():
        _check_gate(recipe, gate, [scale for scale in recipe.scales if scale in scales[name]])


def _check_gate(recipe: Recipe, gate: Gate, scales: list[str]) -> None:
    if not scales:
        raise UserError(f"gates.{gate.id}: no claim needs it; remove it")
    if gate.against_metric is not None and gate.against is None:
        raise UserError(f"gates.{gate.id}.against_metric: it goes with against, which is missing")
    for scale in scales:
        _check_sides(recipe, scale, f"gates.{gate.id}", gate)


def _check_frontiers(recipe: Recipe) -> None:
    """Check that each frontier has enough places for a curve, each once, and that a claim uses it."""
    asked = recipe.document.asked_of_frontiers
    for name, places in recipe.document.frontiers.items():
        path = f"frontiers.{name}"
        if name not in asked:
            raise UserError(f"{path}: no claim or gate uses it; remove it")
        if len(places) < FEWEST:
            raise UserError(f"{path}: expected {FEWEST} places or more, got {len(places)}")
        for index, place in enumerate(places):
            if place in places[:index]:
                raise UserError(f'{path}[{index}]: "{place}" is written twice')


def _check_sides(recipe: Recipe, scale: str, path: str, comparison: Comparison) -> None:
    """Check both sides of a comparison at a scale."""
    keys = (("of", "metric"), ("against", "against_metric" if comparison.against_metric else "metric"))
    for side, (key, metric_key) in zip(comparison.sides, keys, strict=False):
        _check_place(recipe, scale, f"{path}.{key}", side.place, f"{path}.{metric_key}", side.metric)


def _check_place(recipe: Recipe, scale: str, path: str, place: str, metric_path: str, metric: str) -> None:
    """Check that a place exists at the scale and can be measured by the metric."""
    if (name := frontier(place)) is not None:
        known(path, [name], list(recipe.document.frontiers), "frontier")
        return _check_on_frontier(recipe, scale, metric_path, name, metric)
    arm, node = _arm_and_node(recipe, scale, path, place)
    checkpoints, stages = recipe.checkpoints(scale, arm), recipe.stages(scale, arm)
    known(path, [node], [*checkpoints, *stages], "checkpoint or stage")
    if node in stages and of_training(metric):
        return
    if node in checkpoints and of_training(metric):
        raise UserError(
            f'{metric_path}: "{metric}" is a number of training, but {place} is a checkpoint; '
            f"the stages: {', '.join(stages)}"
        )
    if node in checkpoints:
        tasks = _tasks(recipe, scale, arm, node)
        base = recipe.document.coverage
        compared = node != base and base in checkpoints
        _check_evaluated(metric_path, metric, tasks, f"{place} (scale {scale})", compared)
    else:
        forms = f"{', '.join(FORMS[:-1])} or {FORMS[-1]}"
        raise UserError(f'{metric_path}: expected a final number of stage {place}: {forms}, got "{metric}"')


def check_checkpoint(recipe: Recipe, scale: str, path: str, place: str) -> tuple[str, str]:
    """Return the arm and the checkpoint in a place `arm/checkpoint`.

    Raises UserError unless the checkpoint is evaluated at the scale.
    """
    arm, checkpoint = _arm_and_node(recipe, scale, path, place)
    known(path, [checkpoint], recipe.checkpoints(scale, arm), f"checkpoint of arm {arm}")
    return arm, checkpoint


def _arm_and_node(recipe: Recipe, scale: str, path: str, place: str) -> tuple[str, str]:
    """Return the arm and the checkpoint or stage in a place. Raises UserError if the scale lacks the arm."""
    arm, slash, node = place.partition("/")
    if not slash:
        raise UserError(f'{path}: expected arm/checkpoint or arm/stage, got "{place}"')
    if arm in recipe.document.arms and arm not in recipe.arms(scale):
        valid = ", ".join(recipe.arms(scale))
        raise UserError(f'{path}: arm "{arm}" does not exist at scale {scale}; there are: {valid}')
    known(path, [arm], recipe.arms(scale), "arm")
    return arm, node


def _tasks(recipe: Recipe, scale: str, arm: str, checkpoint: str) -> Mapping[str, EvalTask]:
    evaluated = Node(recipe.name, scale, arm, 0, checkpoint, "eval")
    return Graph({recipe.name: recipe}).evaluation(evaluated).tasks


def _check_on_frontier(recipe: Recipe, scale: str, path: str, name: str, metric: str) -> None:
    """Check that each place of a frontier exists at the scale, and has the scores for the metric."""
    match = ON_FRONTIER.fullmatch(metric)
    if not match:
        forms = "TASK/SCORE_at_kl/NATS or TASK/SCORE_at_forward_kl/NATS of a frontier"
        raise UserError(f'{path}: expected {forms}, SCORE one of gold, proxy, accuracy; got "{metric}"')
    task, score, divergence, _ = match.groups()
    for index, place in enumerate(recipe.document.frontiers[name]):
        where = f"{place} (scale {scale})"
        arm, checkpoint = check_checkpoint(recipe, scale, f"frontiers.{name}[{index}]", place)
        tasks = _tasks(recipe, scale, arm, checkpoint)
        known(path, [task], list(tasks), f"task at {where}")
        measuring = task if divergence == "kl" else _task_of_forward_kl(tasks, path, where)
        for scored, wanted in ((measuring, divergence), (task, score)):
            of_task = tasks[scored]
            measured = [*of_task.score, *(("accuracy",) if of_task.is_verified else ())]
            if wanted not in measured:
                names = ", ".join(measured) or "none"
                raise UserError(f"{path}: task {scored} has no score {wanted} at {where}; it has: {names}")


def _task_of_forward_kl(tasks: Mapping[str, EvalTask], path: str, where: str) -> str:
    """Return the task that scores forward_kl; the scores of all tasks are compared at its forward KL."""
    scoring = [name for name, task in tasks.items() if "forward_kl" in task.score]
    if len(scoring) != 1:
        names = ", ".join(scoring) or "none"
        raise UserError(f"{path}: expected one task with the score forward_kl at {where}, got {names}")
    return scoring[0]


def _check_evaluated(
    path: str, metric: str, tasks: Mapping[str, EvalTask], where: str, compared: bool
) -> None:
    """Raise UserError unless one of the tasks has the metric.

    `compared`: whether the checkpoint is compared with the one that `coverage` names.
    """
    asked, _, name = metric.partition("/")
    known(path, [asked], list(tasks), f"task at {where}")
    task = tasks[asked]
    scores, verified = task.score, task.is_verified
    drawn, of_lm_eval = bool(task.k), task.lm_eval is not None
    metrics = [*METRICS, *(VERIFIED if verified else ())] if drawn else ["accuracy"]
    metrics += OF_TOOL if task.tool else ()
    metrics += [
        *(metric for score in scores for metric in SCORED[score]),
        *([OF_LM_EVAL] if of_lm_eval else ()),
    ]
    if compared and verified and drawn:
        metrics += [*COVERED, *([FAMILIAR] if "perplexity" in scores else ())]
    families = [best for _, _, best in best_of(scores, verified)]
    families += ("pass", "maj") if verified else ()
    metrics += [f"{family}@{k}" for family in families for k in task.k]
    levelled = verified and not of_lm_eval
    metrics += [f"{m}/difficulty=N" for m in BY_DIFFICULTY] if levelled else []
    if not (levelled and re.fullmatch(rf"({'|'.join(BY_DIFFICULTY)})/difficulty=\d+", name)):
        known(path, [name], metrics, "metric")


def _check_published(recipe: Recipe, path: str, number: Published) -> None:
    known(f"{path}.scales", number.scales or (), recipe.scales, "scale")
    if number.of is not None or number.against is not None:
        return _check_pair(recipe, path, number)
    if (number.metric is None) != (number.at is None):
        raise UserError(f"{path}: metric and at go together")
    if number.at is None:
        return
    arm, place, metric = number.at.partition("/")[0], number.at, str(number.metric)
    known(f"{path}.at", [arm], list(recipe.document.arms), "arm")

    def check_at(scale: str) -> None:
        _check_place(recipe, scale, f"{path}.at", place, f"{path}.metric", metric)

    _check_at_one(_scales(recipe, number), check_at)


def _check_pair(recipe: Recipe, path: str, number: Published) -> None:
    """Check a published preference: its `of` and `against` are policies that one of its scales evaluates."""
    policies = {"of": number.of, "against": number.against}
    if absent := [key for key, value in (policies | {"metric": number.metric}).items() if value is None]:
        raise UserError(f"{path}.{absent[0]}: missing; of, against and metric go together")
    if number.at is not None:
        raise UserError(f"{path}.at: of and against are given too; remove it")
    known(f"{path}.metric", [str(number.metric)], list(PAIRED), "metric of two policies")

    def check_policies(scale: str) -> None:
        for key, place in policies.items():
            arm, _, checkpoint = str(place).partition("/")
            known(f"{path}.{key}", [arm], recipe.arms(scale), f"arm at scale {scale}")
            known(f"{path}.{key}", [checkpoint], recipe.checkpoints(scale, arm), f"checkpoint of arm {arm}")

    _check_at_one(_scales(recipe, number), check_policies)


def _check_at_one(scales: Iterable[str], check_at: Callable[[str], None]) -> None:
    """Call `check_at` with each scale until one passes; if none does, raise the first scale's UserError."""
    mistakes = []
    for scale in scales:
        try:
            return check_at(scale)
        except UserError as mistake:
            mistakes.append(mistake)
    raise mistakes[0]
