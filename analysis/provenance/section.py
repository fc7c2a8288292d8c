"""Provenance: completions, health checks, configuration, cost, and how to run it again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.page.markup import commented_yaml, script_json
from analysis.page.section import Contents, Made
from analysis.page.tables import Table, cells
from analysis.preferences.contenders import contenders, judged_task
from analysis.provenance import completions, configuration, health, verifiers
from analysis.provenance.cost import cost, cost_shown
from analysis.provenance.jobs import jobs

NAME = "provenance"
TABLES = ("health", "cost")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    spent = cost(run)
    return Contents(
        [
            Table("health", "Health checks", health.worst(health.checks(run))),
            Table("cost", "Cost", spent, cost_shown(spent)),
        ]
    )


@dataclass(frozen=True)
class Page:
    rollouts: Markup  # JSON of training completions
    policies: int  # that are compared; 0: of one arm before and after
    sides: int  # at most so many of them stand side by side
    pairs: list[dict[str, Any]]
    failed: dict[str, Any]
    passed: dict[str, Any]
    audit: dict[str, Any]  # of the verifiers; and in words how often they erred
    audited: str
    differences: dict[str, Any]
    recipe: Markup
    facts: dict[str, list[str]]
    cost: dict[str, Any]
    total: Any  # the last row of cost()
    runs: dict[str, Any]
    citation: str


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    task = judged_task(run, numbers)
    among = contenders(run, numbers, task) if task else []
    checks, trained = health.worst(health.checks(run)), jobs(run)
    spent = pd.read_csv(folder / "cost.csv").fillna({"arm": ""})  # the total has no arm
    audit = verifiers.audit(run)
    return Page(
        rollouts=script_json(completions.rollouts(run)),
        policies=len(among),
        sides=completions.SIDES,
        pairs=completions.side_by_side(run, task, among)
        if among
        else completions.before_after(run, tasks.headline(run)),
        failed=cells(checks[checks.state != "ok"]),
        passed=cells(checks[checks.state == "ok"]),
        audit=cells(audit),
        audited=verifiers.errors(audit) if len(audit) else "",
        differences=cells(configuration.differences(run)),
        recipe=commented_yaml((run.root / f"recipes/{run.name}.yaml").read_text(encoding="utf-8")),
        facts=configuration.facts(trained),
        cost=cells(cost_shown(spent)),
        total=spent.iloc[-1],
        runs=cells(configuration.runs(trained)),
        citation=configuration.citation(run.root / "CITATION.cff"),
    )
