"""From artefacts to numbers.

    python -m analysis.analyse --recipe r1_zero --scale cpu --report report --out results/r1_zero/cpu/report

Writes table.csv, the tables (CSV, Markdown, LaTeX, HTML), figures/ (SVG, PNG) and summary.txt into DIR.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from analysis import command_line, sections_figures
from analysis.numbers import table
from analysis.numbers.run import Run
from analysis.page import tables
from analysis.preferences import section
from analysis.provenance import cost, health
from analysis.results import arms as results_arms
from analysis.training import objectives
from analysis.verdicts import claims, claims_table, published, summary


def analyse(run: Run, out: Path) -> list[str]:
    """Everything in `out`; the five lines of summary.txt."""
    out.mkdir(parents=True, exist_ok=True)
    every = table.collect(run)
    every.to_csv(out / "table.csv", index=False)
    numbers = table.final(every)
    verdicts = claims.judge_all(run.spec.get("claims", []), numbers, run.scale, run.seeds)
    arms, spent = results_arms.arms(run, numbers), cost.cost(table.provenance(run))
    checks, learnt = health.health(table.health(run)), section.gather(run, every)
    beside = published.table_of(run, numbers, learnt.frames)
    where = f"{summary.title(run)}, {run.scale} scale"
    tables.write(out, "arms", f"Arms and metrics. {where}", arms, results_arms.arms_shown(run, arms))
    tables.write(
        out, "claims", f"Verdicts. {where}", claims.frame(verdicts), claims_table.verdicts_shown(verdicts)
    )
    tables.write(out, "published", f"Published numbers beside ours. {where}", beside, beside)
    tables.write(out, "health", f"Health checks. {where}", checks, checks)
    losses = objectives.optimised(run)
    tables.write(out, "objectives", f"Objectives. {where}", losses, losses)
    tables.write(out, "cost", f"Cost. {where}", spent, cost.cost_shown(spent))
    section.write(out, where, learnt.frames)
    drawn = sections_figures.draw_all(run, every, verdicts, out / "figures", learnt)
    (out / "figures/index.json").write_text(json.dumps([asdict(d) for d in drawn], indent=1) + "\n")
    lines = summary.lines(run, numbers, verdicts)
    (out / "summary.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, lambda run, out, report: analyse(run, out), None))
