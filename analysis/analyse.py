"""From artefacts to numbers.

    python -m analysis.analyse --recipe r1_zero --scale cpu --report report --out results/r1_zero/cpu/report

Writes table.csv, the tables (CSV, Markdown, LaTeX, HTML), figures/ (SVG, PNG) and summary.txt into DIR.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from analysis import claims, command, figures, objectives, preferences, published, summary, table, tables


def analyse(run: table.Run, out: Path) -> list[str]:
    """Everything in `out`; the five lines of summary.txt."""
    out.mkdir(parents=True, exist_ok=True)
    every = table.collect(run)
    every.to_csv(out / "table.csv", index=False)
    numbers = table.final(every)
    verdicts = claims.judge_all(run.spec.get("claims", []), numbers, run.scale, run.seeds)
    arms, spent = tables.arms(run, numbers), tables.cost(table.provenance(run))
    checks, learnt = tables.health(table.health(run)), preferences.gather(run, every)
    beside = published.table_of(run, numbers, learnt.frames)
    where = f"{summary.title(run)}, {run.scale} scale"
    tables.write(out, "arms", f"Arms and metrics. {where}", arms, tables.arms_shown(run, arms))
    tables.write(out, "claims", f"Verdicts. {where}", claims.frame(verdicts), tables.verdicts_shown(verdicts))
    tables.write(out, "published", f"Published numbers beside ours. {where}", beside, beside)
    tables.write(out, "health", f"Health checks. {where}", checks, checks)
    losses = objectives.optimised(run)
    tables.write(out, "objectives", f"Objectives. {where}", losses, losses)
    tables.write(out, "cost", f"Cost. {where}", spent, tables.cost_shown(spent))
    preferences.write(out, where, learnt.frames)
    drawn = figures.draw_all(run, every, verdicts, out / "figures", learnt)
    (out / "figures/index.json").write_text(json.dumps([asdict(d) for d in drawn], indent=1) + "\n")
    lines = summary.lines(run, numbers, verdicts)
    (out / "summary.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


if __name__ == "__main__":
    sys.exit(command.main(__doc__, lambda run, out, report: analyse(run, out), None))
