"""The command `encore register`: it writes down what decides a recipe's claims before a judged run."""

import shlex
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import collect, final
from analysis.statistics.intervals import interval
from analysis.verdicts.pairs import pairs
from encore.errors import UserError
from encore.recipe import registration
from encore.recipe.claims import Gate
from encore.recipe.document import DIAL_SEEDS
from encore.recipe.graph import Node
from encore.recipe.load import load_named
from encore.recipe.registration import RegisteredGate
from encore.runtime import digests, suite

FEWEST = 3  # number of dial seeds that must have measured a gate
COMMIT = "commit it, then run"
PACKAGED = "pages will call it not registered, for an installed package has no commit: run it in a clone"
DIGITS = 6  # digits that a value is written with


def register(name: str, scale: str, root: Path = Path(".")) -> list[str]:
    """Write the registration of a recipe's scale; return what to tell the user, line by line.

    Raises UserError if the recipe has no such scale or no claims, or if a gate was measured on too few dial
    seeds.
    """
    graph, recipe, user_file = load_named(name, scale, root)
    name = recipe.name
    claims = recipe.claims(scale)
    if suite.package() and not user_file:
        raise UserError(f"{name}: belongs to the installed package; register it in a clone of Encore")
    if not claims:
        raise UserError(f"{recipe.files.file(scale)}: claims: scale {scale} has no claim to register")
    needed = {need.gate: recipe.document.gates[need.gate] for claim in claims for need in claim.needs}
    seeds = _seeds(root / "results" / name / scale)
    run = Run(graph, name, scale, tuple(recipe.arms(scale)), seeds, root, file=user_file)
    gates = _measured(run, needed) if needed else {}
    file = registration.path(recipe.files)
    registration.write(file, scale, registration.of(graph, recipe, scale, gates))
    advice = PACKAGED if suite.package() else COMMIT
    lines = [f"wrote {file}: {len(claims)} claims, {len(gates)} gates; {advice}"]
    if early := _judged_already(root / "results" / name / scale, recipe.first_seed):
        lines.append(
            f"warning: {early} has been run already, and what it is judged by was not registered then; "
            "remove such folders and run them again from the commit"
        )
    return lines


def _seeds(folder: Path) -> tuple[int, ...]:
    """Return the dial seeds with which an arm has been run."""
    return tuple(sorted({seed for path in folder.glob("*/seed*/") if (seed := _seed(path)) >= DIAL_SEEDS}))


def _judged_already(folder: Path, first: int) -> str:
    """Return the folder of a judged seed in which a stage has ended; "" if there is none."""
    ended = (path.parents[1] for path in sorted(folder.glob("*/seed*/*/metrics.json")))
    return next((path.as_posix() for path in ended if first <= _seed(path) < DIAL_SEEDS), "")


def _seed(folder: Path) -> int:
    """Return the seed of a folder such as seed7; -1 if the folder has another name."""
    digits = folder.name.removeprefix("seed")
    return int(digits) if digits.isdecimal() else -1


def _measured(run: Run, gates: dict[str, Gate]) -> dict[str, RegisteredGate]:
    """Return gates with their values on dial seeds. Raises UserError if any gate has too few."""
    numbers = final(collect(run)) if run.seeds else None
    registered, missing = {}, {}
    for name, gate in gates.items():
        seeds = [seed for seed in run.seeds if _is_as_now(run, gate, seed)]
        values = _values(gate, numbers, seeds)
        if len(values) < FEWEST:
            missing[name] = len(values)
            continue
        low, high = interval(list(values.values()))
        mean = sum(values.values()) / len(values)
        registered[name] = RegisteredGate(
            metric=gate.metric,
            of=gate.of,
            against=gate.against,
            against_metric=gate.against_metric,
            target=gate.target,
            values={str(seed): _rounded(value) for seed, value in values.items()},
            mean=_rounded(mean),
            low=_rounded(low),
            high=_rounded(high),
        )
    if missing:
        raise UserError(_too_few(run, gates, missing))
    return registered


def _is_as_now(run: Run, gate: Gate, seed: int) -> bool:
    """Return whether a gate's quantity was measured with this seed by the recipe as it is written now."""
    places = [place for side in gate.sides for place in run.document.places(side.place)]
    return all(_made_from_now(run, place, seed) for place in places)


def _made_from_now(run: Run, place: str, seed: int) -> bool:
    arm, _, name = place.partition("/")
    kind = "eval" if name in run.recipe.evaluations(run.scale, arm) else "stage"
    node = run.graph.owner(Node(run.name, run.scale, arm, seed, name, kind))
    record = digests.record(run.sentinel(node))
    return record.exists() and record.read_text(encoding="utf-8").strip() == run.graph.lineage(node)


def _values(gate: Gate, numbers: pd.DataFrame | None, seeds: Sequence[int]) -> dict[int, float]:
    """Return dial seed -> the value of a gate, for the seeds that measured it."""
    if numbers is None:
        return {}
    measured = pairs(gate, numbers, seeds)
    return dict(zip(measured.seeds, measured.differences, strict=True))


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _too_few(run: Run, gates: dict[str, Gate], missing: dict[str, int]) -> str:
    """Return a line that names the gates measured on too few dial seeds, and says what to run for them."""
    sides = [side for name in missing for side in gates[name].sides]
    arms = {place.partition("/")[0] for side in sides for place in run.document.places(side.place)}
    words = ["encore", "run", str(run.file or run.name), "--scale", run.scale]
    words += ["--arms", ",".join(arm for arm in run.arms if arm in arms)]
    # dial seeds of the recipe itself are left out
    fresh = (seed for seed in count(DIAL_SEEDS) if seed not in run.recipe.dial_seeds)
    words += ["--seeds", ",".join(map(str, islice(fresh, FEWEST)))]
    counts = ", ".join(f"{name} ({seeds})" for name, seeds in missing.items())
    return (
        f"{run.recipe.files.file()}: gates: expected each to be measured on {FEWEST} dial seeds or more, got "
        f"fewer for {counts}; run `{shlex.join(words)}` first"
    )
