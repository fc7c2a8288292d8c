"""One look of a group-sequential run: which claims are decided, and which arms the others need more of.

    python -m analysis.look --recipe r1_zero --scale cpu --seeds 8 --out results/r1_zero/cpu/looks/8.json

Reads the looks before it from results/, to know which arms have as many seeds. A claim that one of them decided
stays decided.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from analysis import command_line
from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.verdicts.claims import Verdict, judge_all
from analysis.verdicts.summary import plural
from recipes.errors import UserError
from recipes.runtime import files
from recipes.spec.looks import LOOKS, Look, arms_of, on_disk, seeds_of

# Nothing that was measured is no doubt that more seeds could lift.
DECIDED = ("reproduced", "contradicted", "not tested")


def command(run: Run, out: Path, report: str) -> None:
    seeds = len(run.seeds)
    if seeds not in LOOKS:
        raise UserError(f"--seeds: expected that of a look ({', '.join(map(str, LOOKS))}), got {seeds}")
    earlier = [look for look in on_disk(run.name, run.scale, run.root) if look.seeds < seeds]
    look = take(replace(run, by_looks=seeds_of(run.arms, earlier)), earlier)
    files.write_json(out, asdict(look))
    decided, rest = len(look.verdicts) - len(look.open), f"; {', '.join(look.arms)} go on"
    claims = f"{decided} of {plural(len(look.verdicts), 'claim')} decided"
    print(f"[{run.name}/{run.scale}] look at {seeds} seeds: {claims}{rest if look.arms else ''}", flush=True)


def take(run: Run, earlier: Sequence[Look]) -> Look:
    """The look at a run, after these."""
    claims = run.spec.get("claims", [])
    verdicts = judge_all(claims, final(collect(run)), run.scale, run.seeds, run.stopped)
    return found(run, verdicts, earlier)


def found(run: Run, verdicts: Iterable[Verdict], earlier: Sequence[Look]) -> Look:
    """The look from its verdicts."""
    names = {verdict.id: verdict.verdict for verdict in verdicts}
    still_open = [name for name, verdict in names.items() if verdict not in DECIDED]
    if earlier:
        last = earlier[-1]
        still_open = [name for name in still_open if name in last.open]
        names |= {name: verdict for name, verdict in last.verdicts.items() if name not in last.open}
    needed = _needed(run, still_open)
    return Look(len(run.seeds), names, still_open, [arm for arm in run.arms if arm in needed])


def _needed(run: Run, claims: Sequence[str]) -> set[str]:
    gates: Mapping[str, Any] = run.spec.get("gates", {})
    return {
        arm for claim in run.spec.get("claims", []) if claim["id"] in claims for arm in arms_of(claim, gates)
    }


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, command, None))
