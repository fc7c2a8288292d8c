"""The registration of claims: whether they were fixed before the runs that judge them, by git's history.

`encore register` writes what decides the claims of a recipe into its registered.yaml
(encore.recipe.registration). Each run names the commit of its code. A claim is registered if that file
contains the claim, its gates and the arms that it compares, exactly as they are judged, at the commit of
every judged run of these arms.

A record has the table of of_run(), and the registration at the first run. So reading a record needs no git,
and shows which claims were changed after the record was made.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from analysis.numbers.run import Run
from analysis.provenance.configuration import outside_git
from encore.errors import UserError
from encore.recipe import registration
from encore.recipe.claims import Claim
from encore.recipe.files import REGISTERED
from encore.recipe.looks import LOOKS
from encore.recipe.registration import RULE, Registration
from encore.runtime.provenance import git

NAME = "registration"  # name of the table
COLUMNS = ["claim", "registered", "commit", "committed", "first_run", "why"]
NOT_RUN = "it has not been run"
OLD = "the runs were made before claims could be registered"
SHORT = 7  # digits of a commit that are shown


@dataclass(frozen=True)
class History:
    """The registrations of one scale of a recipe in the history of git; `file` is the registered.yaml."""

    file: Path
    scale: str
    _read: dict[str, Registration | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def at(self, commit: str) -> Registration | None:
        """Return the registration at a commit; None if this scale has none, or if it cannot be read."""
        if commit not in self._read:
            text = git(self.file.parent, "show", f"{commit}:./{self.file.name}")
            try:
                registered_scales = registration.parse(text, str(self.file)) if text else {}
            except UserError:  # the file was written by another version of Encore
                registered_scales = {}
            self._read[commit] = registered_scales.get(self.scale)
        return self._read[commit]

    def written(self, commit: str) -> tuple[str, str]:
        """Return the last commit up to `commit` that changed the file, and its date."""
        last = git(self.file.parent, "log", "-1", "--format=%H %cs", commit, "--", self.file.name) or " "
        last_commit, _, day = last.partition(" ")
        return last_commit, day


def of_run(run: Run, trained: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each claim of the run's scale; `trained` is the table of jobs.jobs().

    Column `registered` is yes or no, and `why` is the reason for a no. `commit` is the commit that registered
    the claim.
    """
    if run.record:
        return _of_record(run, run.record)
    history = History(registration.path(run.recipe.files), run.scale)
    judged = trained[trained.seed.isin(run.seeds) & ~trained.stage.str.contains("/", regex=False)]
    rows = []
    for claim in run.recipe.claims(run.scale):
        arms = run.document.arms_of(claim)
        runs = judged[judged.arm.isin(arms)].sort_values("started")
        why = _why_not(run, claim, runs, history)
        commit, day, first = "", "", ""
        if not why:
            first = runs.started.iloc[0]
            commit, day = history.written(runs.commit.iloc[0])
        rows.append((claim.id, "no" if why else "yes", commit, day, first, why))
    return pd.DataFrame(rows, columns=COLUMNS)


def _why_not(run: Run, claim: Claim, runs: pd.DataFrame, history: History) -> str:
    """Return why a claim is not registered; "" if it is. `runs` are the jobs of the arms that it compares."""
    if not len(runs):
        return NOT_RUN
    now = {arm: registration.of_arm(run.graph, run.recipe, run.scale, arm) for arm in _arms(run, claim)}
    for row in runs.drop_duplicates(["commit", "dirty"]).to_dict("records"):
        place, commit = f"{row['arm']}/seed{row['seed']}/{row['stage']}", row["commit"]
        if pd.isna(commit):
            return f"{place} was run {outside_git(row)}"
        if row["dirty"]:
            return f"{place} was run from files that differ from commit {commit[:SHORT]}"
        registered = history.at(commit)
        if registered is None:
            return f"{place} was run at commit {commit[:SHORT]}, which registers nothing of it"
        if differs := _differs(run, claim, registered) or _other_arm(registered, now):
            return f"{place} was run at commit {commit[:SHORT]}, which registers {differs}"
    return ""


def _arms(run: Run, claim: Claim) -> list[str]:
    """Return the arms of the run's scale that a claim and its gates compare."""
    compared = run.document.arms_of(claim)
    return [arm for arm in run.recipe.arms(run.scale) if arm in compared]


def _differs(run: Run, claim: Claim, registered: Registration) -> str:
    """Return which part of a claim was registered differently; "" if it was registered as it is judged."""
    theirs, ours = registered.claims.get(claim.id), registration.claim(claim)
    if theirs is None:
        return "no such claim"
    for name in type(ours).model_fields:
        if getattr(theirs, name) != getattr(ours, name):
            return f"{name} {_said(getattr(theirs, name))}, not {_said(getattr(ours, name))}"
    for need in claim.needs:
        gate = registered.gates.get(need.gate)
        if gate is None or not gate.asks_as(run.document.gates[need.gate]):
            return f"another gate {need.gate}"
    judged = {"rule": RULE, "looks": list(LOOKS), "first_seed": run.recipe.first_seed}
    for name, value in judged.items():
        if getattr(registered, name) != value:
            return f"{name} {_said(getattr(registered, name))}, not {_said(value)}"
    return ""


def _said(value: object) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _other_arm(registered: Registration, now: Mapping[str, str]) -> str:
    """Return a phrase on the arms that were registered with other stages or evaluations; "" if none was.

    `now` maps each arm to its present digest.
    """
    other = [arm for arm, digest in now.items() if registered.arms.get(arm) != digest]
    return f"other stages or evaluations of {', '.join(other)}" if other else ""


def _of_record(run: Run, record: Path) -> pd.DataFrame:
    """Return the table of of_run() from a record; claims that were changed later count as unregistered."""
    claims = run.recipe.claims(run.scale)
    file = record / REGISTERED
    if not file.exists():
        return pd.DataFrame([(claim.id, "no", "", "", "", OLD) for claim in claims], columns=COLUMNS)
    kept = pd.read_csv(record / f"{NAME}.csv", dtype=str, keep_default_na=False).set_index("claim")
    registered = registration.parse(file.read_text(encoding="utf-8"), str(file))[run.scale]
    rows = []
    for claim in claims:
        row = dict(kept.loc[claim.id]) if claim.id in kept.index else dict.fromkeys(COLUMNS, "")
        differs = _differs(run, claim, registered)
        why = row["why"] or (f"it was changed after the record, which registers {differs}" if differs else "")
        row |= {"claim": claim.id, "registered": "no" if why else "yes", "why": why}
        rows.append([row[name] for name in COLUMNS])
    return pd.DataFrame(rows, columns=COLUMNS)


def joined(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the table of of_run() for all seeds of several such tables.

    A claim needs a yes in each table whose seeds ran its arms.
    """
    rows = pd.concat(tables, ignore_index=True)
    order = (1 * (rows.registered == "yes") + 2 * (rows.why == NOT_RUN)).sort_values(kind="stable").index
    first = rows.loc[order].drop_duplicates("claim").set_index("claim")
    return first.loc[rows.claim.drop_duplicates()].reset_index()[COLUMNS]


def keep(run: Run, table: pd.DataFrame, out: Path) -> None:
    """Write the newest registration of a registered claim into the record `out`; nothing if there is none.

    The newest one has the claims of earlier ones too, because claims on new arms are added to them.
    """
    (out / REGISTERED).unlink(missing_ok=True)
    if not (table.registered == "yes").any():
        return
    newest = table[table.registered == "yes"].sort_values("first_run").iloc[-1]
    registered = History(registration.path(run.recipe.files), run.scale).at(newest["commit"])
    assert registered is not None
    registration.write(out / REGISTERED, run.scale, registered)


SHORTLY = {
    "registered": "Claims were fixed before the first run",
    "partly registered": "Some claims were fixed before the first run",
    "not registered": "Not registered",
}


@dataclass(frozen=True)
class Standing:
    """Whether the claims of a page are registered, in a word and in sentences."""

    word: str  # registered | partly registered | not registered; empty without claims
    said: str

    @property
    def short(self) -> str:
        """The word as a short sentence without its full stop; empty if there are no claims."""
        return SHORTLY.get(self.word, "")


def standing(table: pd.DataFrame) -> Standing:
    """Return whether all, some or none of the claims in a table of of_run() are registered, and why not."""
    if not len(table):
        return Standing("", "")
    held, rest = table[table.registered == "yes"], table[table.registered == "no"]
    reasons = _reasons(rest)
    if not len(held):
        return Standing("not registered", f"Not registered: {reasons}.")
    first = held.sort_values("first_run").iloc[0]
    before = (
        f"what decides a claim stood in commit {first['commit'][:SHORT]} of {first['committed']}, "
        f"before the first judged run ({first['first_run'][:16].replace('T', ' ')} UTC)."
    )
    if not len(rest):
        return Standing("registered", f"Registered: {before}")
    named = reasons if rest.why.nunique() > 1 else f"{', '.join(rest.claim)}: {reasons}"
    return Standing("partly registered", f"Registered: {before} Not so {named}.")


def _reasons(rows: pd.DataFrame) -> str:
    """Return a text with the reason why these claims are not registered, or each reason with its claims."""
    claims = {str(why): ", ".join(names) for why, names in rows.groupby("why", sort=False).claim}
    return next(iter(claims)) if len(claims) == 1 else "; ".join(f"{n}: {why}" for why, n in claims.items())
