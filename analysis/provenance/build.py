"""The contents of section "provenance": completions, health checks, cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pydantic import TypeAdapter

from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.preferences.build import Preferences
from analysis.provenance import completions, cost, health, jobs, registration
from analysis.provenance.completions import Pair, Rollout


@dataclass(frozen=True)
class Provenance:
    """The contents of section "provenance", from files of the jobs or from a record."""

    rollouts: Sequence[Rollout]
    policies: int  # number of policies that are compared; 0 if only one arm is shown, before and after
    pairs: Sequence[Pair]  # answers of the policies to the same problems
    health: pd.DataFrame  # the checks, all as text
    cost: pd.DataFrame
    jobs: pd.DataFrame
    registration: pd.DataFrame  # the table of registration.of_run


def build(run: Run, preferences: Preferences) -> Provenance:
    """Return the contents of the section, from the artefacts of a run or from its record."""
    trained, policies = jobs.jobs(run), preferences.policies
    if run.record:
        kept = run.samples_kept("provenance")
        rollouts = TypeAdapter(list[Rollout]).validate_python(kept.get("rollouts", []))
        pairs = TypeAdapter(list[Pair]).validate_python(kept.get("pairs", []))
    else:
        rollouts = completions.rollouts(run)
        pairs = (
            completions.side_by_side(run, preferences.task, policies)
            if policies
            else completions.before_after(run, tasks.headline(run))
        )
    checks = run.kept("health", lambda: health.worst(health.checks(run)), text=True)
    # the row of the total has no arm
    spent = run.kept("cost", lambda: cost.cost(run, trained)).fillna({"arm": ""})
    if "planned_s" not in spent:  # records made before times were planned lack the column
        spent = spent.assign(planned_s=0.0)
    registered = registration.of_run(run, trained)
    return Provenance(rollouts, len(policies), pairs, checks, spent, trained, registered)
