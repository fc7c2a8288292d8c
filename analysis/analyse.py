"""From artefacts to numbers.

    python -m analysis.analyse --recipe r1_zero --scale cpu --report report --out results/r1_zero/cpu/report

Writes table.csv, the tables (CSV, Markdown, LaTeX, HTML), figures/ (SVG, PNG, PDF) and summary.txt into DIR.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from analysis import command_line
from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.page import figures, tables
from analysis.page.section import SHOWN
from analysis.page.style import FORMATS
from analysis.provenance import jobs
from analysis.sections import SECTIONS, contents
from analysis.verdicts import claims, summary
from encore.errors import UserError


def command(run: Run, out: Path, report: str) -> None:
    if not any(path.exists() for path in map(run.sentinel, run.all_nodes())):
        raise UserError(
            f"no results of recipe {run.name} at scale {run.scale} in {run.root.resolve()}; {out} is left as "
            f"it is; run snakemake --cores {run.name} first"
        )
    analyse(run, out)


def analyse(run: Run, out: Path) -> list[str]:
    """Write everything into `out`; the five lines of summary.txt."""
    return write(run, collect(run), out)


def write(run: Run, table: pd.DataFrame, out: Path, formats: Sequence[str] = FORMATS) -> list[str]:
    """The same from the tidy table of a run, with the figures in these formats."""
    out.mkdir(parents=True, exist_ok=True)
    table.to_csv(out / "table.csv", index=False)
    where = f"{summary.title(run)}, {run.scale} scale"
    drawn, by_name = [], contents(run, table)
    for section in SECTIONS:
        one = by_name[section.NAME]
        tables.write_all(out, section.TABLES, one.tables, where)
        drawn += figures.draw_all(run, section.NAME, one.figures, out / "figures", formats)
    shown = {name: one.shown for name, one in by_name.items() if one.shown}
    (out / SHOWN).write_text(json.dumps(shown, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    jobs.write(jobs.jobs(run), out / jobs.FILE)
    (out / "figures/index.json").write_text(json.dumps([asdict(d) for d in drawn], indent=1) + "\n")
    lines = summary.lines(run, final(table), claims.read(out / "claims.csv"))
    (out / "summary.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, command, None))
