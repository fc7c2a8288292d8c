"""The completions that a report shows: how they are chosen, and how they are made safe to show.

A model wrote them, so they may contain anything: markup, broken characters, a megabyte of text. This module
turns them into short plain text that any encoder accepts; the template escapes it. They are chosen by a fixed
rule, not by hand.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from analysis.numbers.means import MINUS
from analysis.numbers.run import Row, Run, read_lines
from analysis.preferences.contenders import Contender, representatives
from encore.recipe.metric_names import OF_WORLD

LONGEST = 2000  # largest number of characters of one text that are shown
STEPS = 5  # largest number of training steps of one arm that are shown
EACH = 3  # largest number of correct, and of incorrect, completions of one step that are shown
ITEMS = 6  # largest number of held-out problems that are shown
SIDES = 6  # largest number of policies side by side
ARROW = "\u2190"
SCORES = ("gold", "proxy", *OF_WORLD)  # scores shown with a completion

# Control characters become visible pictures, so that none acts on the reader's page or terminal.
CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}


def safe(text: object) -> str:
    """Return a text that is safe to show: cut at LONGEST characters, without surrogates or controls."""
    full = str(text)
    part = full[:LONGEST].encode("utf-16", "surrogatepass").decode("utf-16", "replace").translate(CONTROLS)
    return part if len(full) <= LONGEST else f"{part}\n[clipped: {len(full):,} characters in all]"


def finite(value: float | None) -> float | None:
    """Return the number; None for nan and infinity, which JSON cannot express."""
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class Rollout:
    """A completion from training, in the form that the page shows."""

    arm: str
    step: int
    prompt: str
    completion: str
    answer: str
    reward: float | None  # the reward; None if it is not finite
    rewards: dict[str, float | None]
    tokens: int | None
    correct: bool | None  # whether it is correct; None if the arm does not score accuracy


@dataclass(frozen=True)
class Side:
    """The answer of one policy to a held-out problem, with its score."""

    checkpoint: str
    completion: str
    correct: bool | None
    scores: str


@dataclass(frozen=True)
class Pair:
    """A held-out problem, and the answers of several policies to it."""

    question: str
    answer: str
    difficulty: float | int | None
    sides: tuple[Side, ...]


def correct(row: Row) -> bool | None:
    """Return whether the verifier accepts a rollout; None if the arm does not score accuracy."""
    score = (row.get("rewards") or {}).get("accuracy")
    return None if score is None or math.isnan(score) else score > 0


def rollouts(run: Run) -> list[Rollout]:
    """Return training completions of each arm's first seed, from STEPS steps that are evenly spaced.

    For each step they are the first EACH correct and the first EACH incorrect completions, of different
    prompts.
    """
    return [row for arm in run.arms for row in _of_arm(run, arm)]


def _of_arm(run: Run, arm: str) -> Iterator[Rollout]:
    paths = [run.folder(node) / "completions.jsonl" for node in run.stages(arm, run.seeds[0])]
    path = next((path for path in reversed(paths) if path.exists()), None)
    if path is None:
        return
    by_step: dict[int, dict[bool | None, list[Rollout]]] = {}
    for row in read_lines(path):
        kept = by_step.setdefault(row["step"], {}).setdefault(correct(row), [])
        if len(kept) < EACH and safe(row["prompt"]) not in [other.prompt for other in kept]:
            kept.append(_shown(arm, row))
    steps = sorted(by_step)
    last = len(steps) - 1
    for step in sorted({steps[round(i * last / (STEPS - 1))] for i in range(STEPS)} if steps else []):
        for group in by_step[step].values():
            yield from group


def _shown(arm: str, row: Row) -> Rollout:
    return Rollout(
        arm=arm,
        step=row["step"],
        prompt=safe(row["prompt"]),
        completion=safe(_laid_out(row["completion"], row.get("turns"))),
        answer=safe(row.get("answer", "")),
        reward=finite(row["reward"]),
        rewards={safe(name): finite(value) for name, value in (row.get("rewards") or {}).items()},
        tokens=row.get("tokens"),
        correct=correct(row),
    )


def _laid_out(text: str, turns: Sequence[str] | None) -> str:
    """Return a completion with each result of a tool on its own line, after an arrow."""
    if not turns or len(turns) == 1:
        return text
    return "\n".join(f"{ARROW} {turn}" if number % 2 else turn for number, turn in enumerate(turns))


def before_after(run: Run, task: str) -> list[Pair]:
    """Return a held-out problem for each difficulty, with the first sample before and after training.

    The samples are from the first seed of every arm. A policy that arms share is shown once.
    """
    if not run.ends:
        return []
    policies = {run.graph.owner(run.evaluation(run.arms[0], run.ends[0])): (run.ends[0], run.arms[0])}
    for arm in run.arms:
        for name in run.checkpoints(arm)[-1:]:
            policies.setdefault(run.graph.owner(run.evaluation(arm, name)), (f"{arm}, {name}", arm))
    ends = [(name, arm, name.rpartition(", ")[2]) for name, arm in policies.values()]
    return _beside(run, task, ends)


def side_by_side(run: Run, task: str, among: Sequence[Contender]) -> list[Pair]:
    """Return a held-out problem for each difficulty, with the first sample of at most SIDES policies."""
    chosen = representatives(among, SIDES)
    return _beside(run, task, [(contender.name, contender.arm, contender.checkpoint) for contender in chosen])


def _beside(run: Run, task: str, policies: list[tuple[str, str, str]]) -> list[Pair]:
    """Return a held-out problem for each difficulty, with the first sample of each policy.

    `policies` are (name, arm, checkpoint); policies without samples on disk are left out.
    """
    read = {name: first_samples(run, arm, checkpoint).get(task, {}) for name, arm, checkpoint in policies}
    names, sides = list(filter(read.get, read)), list(filter(None, read.values()))
    if not sides:
        return []
    shared = [[side[item] for side in sides] for item in sides[0] if all(item in side for side in sides)]
    by_difficulty = {
        rows[0].get("difficulty"): rows for rows in reversed(shared)
    }  # the first item of each difficulty
    chosen = sorted(by_difficulty.items(), key=lambda pair: (pair[0] is None, pair[0]))[:ITEMS]
    return [pair(names, rows) for _, rows in chosen]


def pair(names: Sequence[str], rows: Sequence[Row]) -> Pair:
    """Return one held-out problem with the first sample of each policy.

    `names` are the policies' names, and `rows` are their samples of this problem.
    """
    sides = [
        Side(
            name,
            safe(_laid_out(row["completions"][0], row.get("turns", [()])[0])),
            row["correct"][0],
            _scores(row),
        )
        for name, row in zip(names, rows, strict=True)
    ]
    first = rows[0]
    return Pair(safe(first["question"]), safe(first["answer"]), first.get("difficulty"), tuple(sides))


def _scores(row: Row) -> str:
    """Return the scores of the first sample, such as `gold 1.20, proxy 0.85, 14 tokens`; "" without any."""
    named = [f"{name.replace('_', ' ')} {row[name][0]:.2f}" for name in SCORES if row.get(name)]
    named = [text.replace("-0.00", "0.00").replace("-", MINUS) for text in named]
    return ", ".join([*named, f"{row['tokens'][0]} tokens"]) if named else ""


def first_samples(run: Run, arm: str, checkpoint: str) -> dict[str, dict[Hashable, Row]]:
    """Return task -> item -> its row of samples, for the first seed; {} if there are none on disk."""
    by_task: dict[str, dict[Hashable, Row]] = {}
    for row in run.samples(run.graph.owner(run.evaluation(arm, checkpoint))):
        if row["completions"]:
            by_task.setdefault(row["task"], {})[row["item"]] = row
    return by_task
