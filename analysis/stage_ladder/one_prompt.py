"""One held-out prompt of each task, answered by all steps of the ladder, and chosen by a rule."""

from collections.abc import Sequence

from pydantic import TypeAdapter

from analysis.numbers.run import Row, Run
from analysis.provenance.completions import Pair, first_samples, pair
from analysis.stage_ladder.steps import Step, evaluated


def one_prompt(run: Run, ladder: Sequence[Step]) -> dict[str, Pair]:
    """Task -> the first samples of the first seed, of the steps whose samples of it are on disk.

    The item is the one on which the steps disagree most: see disagreement(); among equals the first. Tasks
    that one step alone has are left out. A record has kept what was chosen.
    """
    if run.record:
        kept = run.samples_kept("stage_ladder").get("prompts", {})
        return TypeAdapter(dict[str, Pair]).validate_python(kept)
    read = {step.name: first_samples(run, step.arm, step.checkpoint) for step in ladder}
    chosen = {}
    for task in evaluated(run, ladder):
        sides = {name: by_task[task] for name, by_task in read.items() if task in by_task}
        items = next(iter(sides.values()), {})
        shared = [item for item in items if all(item in rows for rows in sides.values())]
        if len(sides) > 1 and shared:
            by_item = [[rows[item] for rows in sides.values()] for item in shared]
            chosen[task] = pair(list(sides), max(by_item, key=disagreement))
    return chosen


def disagreement(rows: Sequence[Row]) -> tuple[int, float]:
    """How much the first samples of one item, one a step, differ, to be compared.

    Pairs of which one is right and one wrong; then the distance from the least gold reward to the most.
    """
    right = [row["correct"][0] for row in rows]
    gold = [row["gold"][0] for row in rows if row.get("gold")]
    return right.count(True) * right.count(False), max(gold, default=0.0) - min(gold, default=0.0)
