"""One look of a group-sequential run: which claims are decided, and which arms the others need more of.

    python -m analysis.look --recipe r1_zero --scale cpu --seeds 8 --out results/r1_zero/cpu/looks/8.json

Reads the looks before it from results/, to know which arms have as many seeds. What one of them decided stays
decided.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from analysis import command_line
from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.verdicts.claims import Verdict, judge_all
from analysis.verdicts.summary import plural
from recipes.errors import UserError
from recipes.runtime import files
from recipes.spec.looks import LOOKS, Look, arms_of, claims_at, on_disk, seeds_of

# Where eight seeds measured nothing that can be tested, more of them will not.
DECIDED = ("reproduced", "contradicted", "not tested")


def command(run: Run, out: Path, report: str) -> None:
    seeds = len(run.seeds)
    if seeds not in LOOKS:
        raise UserError(f"--seeds: expected that of a look ({', '.join(map(str, LOOKS))}), got {seeds}")
    earlier = [look for look in on_disk(run.name, run.scale, run.root) if look.seeds < seeds]
    look = take(replace(run, by_looks=seeds_of(run.arms, earlier)), earlier)
    files.write_json(out, asdict(look))
    print(f"[{run.name}/{run.scale}] {line(look)}", flush=True)


def line(look: Look) -> str:
    """`look at 8 seeds: 3 of 4 claims decided; more seeds for base-recipe, random`."""
    decided = f"{len(look.verdicts) - len(look.open)} of {plural(len(look.verdicts), 'claim')} decided"
    goes_on = bool(look.arms) and look.seeds < LOOKS[-1]
    rest = f"; more seeds for {', '.join(look.arms)}" if goes_on else ""
    return f"look at {look.seeds} seeds: {decided}{rest}"


def take(run: Run, earlier: Sequence[Look]) -> Look:
    """The look at a run, after these."""
    stated = claims_at(run.recipe, run.scale)
    return found(run, judge_all(stated, final(collect(run)), run.scale, run.seeds, run.stopped), earlier)


def found(run: Run, verdicts: Iterable[Verdict], earlier: Sequence[Look]) -> Look:
    """The look from its verdicts."""
    names = {verdict.id: verdict.verdict for verdict in verdicts}
    undecided = [name for name, verdict in names.items() if verdict not in DECIDED]
    if earlier:
        last = earlier[-1]
        undecided = [name for name in undecided if name in last.open]
        names |= {name: verdict for name, verdict in last.verdicts.items() if name not in last.open}
    gates, stated = run.spec.get("gates", {}), run.spec["claims"]
    needed = {arm for claim in stated if claim["id"] in undecided for arm in arms_of(claim, gates)}
    return Look(len(run.seeds), names, undecided, [arm for arm in run.arms if arm in needed])


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, command, None))
