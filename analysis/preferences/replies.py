"""The scores of the contenders' replies to the items (problems) of a task.

All policies of a seed are asked the same items, and policies are compared within a seed. So comparisons are
paired by item and by seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.numbers.run import Run
from analysis.preferences.contenders import Contender, in_arm, representatives
from encore.recipe.graph import Node
from evals.metrics import DIGITS

MOST = 12  # largest number of contenders on a page
REFERENCE = "reference reply"  # name of the world's own replies, which are one more contender


@dataclass(frozen=True)
class Replies:
    """The scores of one policy's replies in one seed: name of the score -> array (items, samples).

    The names are gold and tokens (the length) and, if the evaluation has them, proxy and reference_gold. The
    last is the gold of the world's own replies, (items, 1).
    """

    items: tuple[tuple[int, str], ...]  # number and question of each item
    scores: dict[str, np.ndarray]


BySeed = Mapping[int, Replies]
Read = dict[Node, Replies | None]


def of_all(
    run: Run, among: Sequence[Contender], start: Contender | None, task: str
) -> tuple[dict[str, BySeed], dict[str, BySeed]]:
    """Return name -> replies of at most MOST contenders, and name -> replies of `start` for the same names.

    The latter are scored by the proxy that scored the contender of that name.
    """
    of_contenders: dict[str, BySeed] = {}
    of_start: dict[str, BySeed] = {}
    read: Read = {}
    if start is None:
        return of_contenders, of_start
    for contender in representatives(among, MOST):
        if by_seed := _of_one(run, contender, task, read):
            of_contenders[contender.name] = by_seed
            of_start[contender.name] = _of_one(run, in_arm(run, start, contender.arm), task, read)
    return of_contenders, of_start


def _of_one(run: Run, contender: Contender, task: str, read: Read) -> BySeed:
    """Return seed -> the contender's replies; seeds without samples on disk or without gold are left out.

    `read` caches the replies of each evaluation.
    """
    by_seed = {}
    for seed in run.seeds:
        node = run.graph.owner(run.evaluation(contender.arm, contender.checkpoint, seed))
        if node not in read:
            read[node] = _read_replies(run, node, task)
        if (replies := read[node]) is not None:
            by_seed[seed] = replies
    return by_seed


def _read_replies(run: Run, node: Node, task: str) -> Replies | None:
    rows = [row for row in run.samples(node) if row["task"] == task and row.get("gold")]
    if not rows:
        return None
    names = ["gold", "tokens"] + (["proxy"] if all(row.get("proxy") for row in rows) else [])
    scores = {name: np.round(np.array([row[name] for row in rows], dtype=float), DIGITS) for name in names}
    if all(row.get("reference_gold") is not None for row in rows):
        reference = np.array([[row["reference_gold"]] for row in rows], dtype=float)  # (items, 1)
        scores["reference_gold"] = np.round(reference, DIGITS)
    return Replies(tuple((row["item"], row["question"]) for row in rows), scores)


def reference(by_seed: BySeed) -> dict[str, BySeed]:
    """Return the world's own replies to the items in `by_seed`, as a contender named REFERENCE.

    Seeds that were asked the same items share one Replies object, and so count once. The result is {} if the
    evaluations have no such replies.
    """
    of_items: dict[tuple[tuple[int, str], ...], Replies] = {}
    for replies in by_seed.values():
        if "reference_gold" in replies.scores and replies.items not in of_items:
            of_items[replies.items] = Replies(replies.items, {"gold": replies.scores["reference_gold"]})
    distinct = {
        seed: of_items[replies.items] for seed, replies in by_seed.items() if replies.items in of_items
    }
    return {REFERENCE: distinct} if distinct else {}


def paired(policy: Replies, other: Replies, score: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the `score` of both policies' replies, (items, samples) each, on the items that both have."""
    shared = sorted(set(policy.items) & set(other.items))
    sides = []
    for side in (policy, other):
        place = {item: index for index, item in enumerate(side.items)}
        sides.append(side.scores[score][[place[item] for item in shared]])
    return sides[0], sides[1]
