"""From numbers to one page.

    python -m analysis.report --recipe r1_zero --scale cpu --out results/r1_zero/cpu/report.html

Reads what analysis.analyse wrote into the folder named like the page, without `.html`, and writes one
self-contained HTML file: no request leaves it, and its policy lets no script run but its own.
"""

import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from analysis import command_line
from analysis.numbers import means, table, tasks
from analysis.numbers.run import Run
from analysis.preferences import contenders, section
from analysis.provenance import completions, configuration, cost, health
from analysis.results import arms as results_arms
from analysis.results import uncertainty
from analysis.statistics.intervals import ENOUGH
from analysis.training import objectives
from analysis.verdicts import claims, claims_table, published, summary
from recipes.errors import UserError

_NUMERIC = re.compile(
    rf"(< )?[{means.MINUS}+]?\d[\d.,]*(e\d+)?( ?%)?( \[.*\])?"  # 0.19 [0.18, 0.20], 26.3 % [24.8, 27.8]
    rf"|\d+/\d+|(\d+ (h|min|s) ?)+|{means.DASH}"
)
LONG = 40  # characters from which a cell gets room for a line of text


def render(run: Run, folder: Path, report: str = "report") -> str:
    """The page, from the folder that analyse wrote and the completions of the run."""
    numbers = table.final(_table(folder / "table.csv"))
    verdicts = claims.read(folder / "claims.csv")
    task = tasks.headline(run)
    provenance = table.provenance(run)
    rollouts = completions.rollouts(run)
    learnt = section.read(folder)
    judged = contenders.judged_task(run, numbers)
    by_task = [frame for kind, _, frame in learnt if kind.name in section.BY_TASK]
    apart = {name for frame in by_task for name in frame.task} - {judged, task}
    arms, checks = results_arms.arms(run, numbers), health.health(table.health(run))
    script = _template("viewer.js").render()
    among = contenders.contenders(run, numbers, judged) if judged else []
    figures = {figure["name"]: figure for figure in json.loads((folder / "figures/index.json").read_text())}
    for name, figure in figures.items():
        figure["src"] = _data_uri(folder / f"figures/{name}.svg")
    return _template("report.html").render(
        run=run,
        title=summary.title(run),
        task=task,
        summary=summary,
        claims_table=claims_table,
        means=means,
        enough=ENOUGH,
        fixed=uncertainty.fixed(run),
        scope=uncertainty.scope(run),
        coverage=uncertainty.coverage(len(run.seeds)),
        parts=_cells(uncertainty.parts(run, numbers, arms)),
        accuracy=summary.change(run, numbers, f"{task}/accuracy"),
        length=summary.change(run, numbers, f"{task}/length"),
        measure=tasks.measure(numbers, task),
        gold=summary.change(run, numbers, f"{task}/gold"),
        wins=summary.change(run, numbers, f"{task}/win_rate"),
        learnt=[(kind, caption, _cells(kind.shown(frame))) for kind, caption, frame in learnt],
        policies=[who.name for who in among],
        pass_k=tasks.largest(numbers, task, "pass"),
        pass_change=summary.change(run, numbers, tasks.largest(numbers, task, "pass") or ""),
        verdicts=verdicts,
        tally=claims.tally(verdicts),
        figures=figures,
        arms_table=_cells(results_arms.arms_shown(run, arms[~arms.task.isin(apart)] if apart else arms)),
        objectives=_cells(objectives.grouped(objectives.optimised(run))),
        conformance=objectives.conformance(run).to_dict("records"),
        published=_cells(published.table_of(run, numbers, {kind.name: frame for kind, _, frame in learnt})),
        failed=_cells(checks[checks.state != "ok"]),
        passed=_cells(checks[checks.state == "ok"]),
        cost=_cells(cost.cost_shown(cost.cost(provenance))),
        total=cost.cost(provenance).iloc[-1],
        rollouts=_json(rollouts),
        pairs=completions.side_by_side(run, judged, among) if among else completions.before_after(run, task),
        sides=completions.SIDES,
        differences=_cells(configuration.differences(run)),
        recipe_yaml=_commented((run.root / f"recipes/{run.name}.yaml").read_text(encoding="utf-8")),
        facts=configuration.facts(provenance),
        runs=_cells(configuration.runs(provenance)),
        commands=configuration.commands(run, report),
        citation=_citation(run.root / "CITATION.cff"),
        style=Markup(_template("style.css").render()),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _template(name: str) -> Any:
    loader = PackageLoader("analysis.page", "templates")
    escaped = name.endswith(".html")
    return Environment(
        loader=loader, autoescape=escaped, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    ).get_template(name)


def _table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except FileNotFoundError:
        raise UserError(f"{path}: missing; run analysis.analyse first") from None


def _json(rows: list[dict[str, Any]]) -> Markup:
    """JSON that cannot end the script element it stands in, whatever a completion contains."""
    text = json.dumps(rows, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _data_uri(svg: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.read_bytes()).decode()


def _cells(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame for the template: columns, rows of text, and which columns are numbers."""
    rows = [[str(cell) for cell in row] for row in frame.itertuples(index=False)]
    columns = [str(column) for column in frame.columns]
    numeric = [bool(rows) and all(_NUMERIC.fullmatch(row[i]) for row in rows) for i in range(len(columns))]
    long = [any(len(row[i]) > LONG for row in rows) for i in range(len(columns))]
    return {"columns": columns, "rows": rows, "numeric": numeric, "long": long}


def _commented(text: str) -> Markup:
    """The recipe's YAML, escaped, with its comments (the sources) marked."""
    lines = []
    for line in text.splitlines():
        at = _comment(line)
        comment = Markup("<i>{}</i>").format(line[at:]) if at < len(line) else ""
        lines.append(escape(line[:at]) + comment)
    return Markup("\n").join(lines)


def _comment(line: str) -> int:
    """Where the line's comment starts, or its length: a # at the start or after a space, outside quotes."""
    quote = ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and line[at - 1 : at] in ("", " "):
            return at
    return len(line)


def _citation(path: Path) -> str:
    """BibTeX of CITATION.cff; empty where there is none."""
    if not path.exists():
        return ""
    cff = yaml.safe_load(path.read_text(encoding="utf-8"))
    authors = " and ".join("{" + author["name"] + "}" for author in cff["authors"] if "name" in author)
    year = str(cff["date-released"])[:4]
    return (
        f"@software{{encore,\n  title   = {{{cff['title']}}},\n  author  = {{{authors}}},\n"
        f"  version = {{{cff['version']}}},\n  year    = {{{year}}}\n}}"
    )


def write(run: Run, out: Path, report: str) -> None:
    """The page of the analysis in the folder of the same name."""
    out.write_text(render(run, out.with_suffix(""), report), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(command_line.main(__doc__, write, None))
