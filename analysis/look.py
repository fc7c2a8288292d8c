"""Take a look at a run: which claims are decided, and which arms need more seeds for the open claims.

    python -m analysis.look --recipe r1_zero --scale cpu --seeds 8 --out results/r1_zero/cpu/looks/8.json

The command reads the earlier looks from results/, because they say which arms were stopped before this look.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from analysis import command_line
from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.verdicts.claims import Verdict
from analysis.verdicts.decision import judge_run
from analysis.verdicts.summary import plural
from encore.errors import UserError
from encore.recipe.looks import LOOKS, Look, on_disk, seeds_of
from encore.runtime import files


def command(run: Run, out: Path, report: str) -> None:
    seeds = len(run.seeds)
    if seeds not in LOOKS:
        raise UserError(f"--seeds: expected the number of a look ({', '.join(map(str, LOOKS))}), got {seeds}")
    earlier = [look for look in on_disk(run.name, run.scale, run.root) if look.seeds < seeds]
    look = take(replace(run, by_looks=seeds_of(run.arms, earlier)))
    files.write_json(out, asdict(look))
    print(f"[{run.name}/{run.scale}] {line(look)}", flush=True)


def line(look: Look) -> str:
    """Return a line such as `look at 8 seeds: 3 of 4 claims decided; more seeds for base-recipe, random`."""
    decided = f"{len(look.verdicts) - len(look.open)} of {plural(len(look.verdicts), 'claim')} decided"
    goes_on = bool(look.arms) and look.seeds < LOOKS[-1]
    rest = f"; more seeds for {', '.join(look.arms)}" if goes_on else ""
    return f"look at {look.seeds} seeds: {decided}{rest}"


def take(run: Run) -> Look:
    """Return the look at a run with all of its seeds, from its artefacts."""
    return found(run, judge_run(run, final(collect(run)))[-1])


def found(run: Run, verdicts: Sequence[Verdict]) -> Look:
    """Return the look that follows from verdicts: each claim's verdict, open claims, and arms that go on.

    Claims of other scales are left out.
    """
    stated = {claim.id: claim for claim in run.recipe.claims(run.scale)}
    words = {v.id: v.word for v in verdicts if v.id in stated}
    undecided = [v.id for v in verdicts if v.id in stated and not v.decided]
    needed = {arm for name in undecided for arm in run.document.arms_of(stated[name])}
    return Look(len(run.seeds), words, undecided, [arm for arm in run.arms if arm in needed])


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, command, None))
