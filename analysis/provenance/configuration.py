"""The configuration of a run: how its arms differ, its code and machine, and the commands to repeat it."""

import shlex
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from analysis.numbers.means import DASH
from analysis.numbers.run import Run
from analysis.numbers.settings import settings
from encore.recipe.document import CHOSEN
from encore.recipe.looks import AUTO
from encore.runtime import suite


def differences(run: Run) -> pd.DataFrame:
    """Return a row for each resolved setting in which an arm differs from the first arm, with both values.

    A stage that only one of the two arms has is one row. An input that is the same stage, as run by each of
    the two arms, is not a difference, and neither is an evaluation that only one of them makes.
    """
    first = run.arms[0]
    base = dict(settings(run, first))
    rows = []
    for arm in run.arms[1:]:
        arm_settings = dict(settings(run, arm))
        values = {first: _of_common_parts(base, arm_settings), arm: _of_common_parts(arm_settings, base)}
        for key in dict.fromkeys([*values[arm], *values[first]]):
            theirs, ours = (values[side].get(key, DASH) for side in (first, arm))
            if theirs not in (ours, f"{ours.removesuffix(f'@{arm}')}@{first}"):
                rows.append({"arm": arm, "setting": key, first: theirs, "here": ours})
    return pd.DataFrame(rows, columns=["arm", "setting", first, "here"])


def _of_common_parts(arm_settings: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the parts that both arms have, and the kind of each other stage by its name."""
    common = {_part(key) for key in others}
    shared = {key: value for key, value in arm_settings.items() if _part(key) in common}
    kinds = {_part(key): value for key, value in arm_settings.items() if key == f"{_part(key)}.run"}
    return shared | {stage: kind for stage, kind in kinds.items() if stage not in common}


def _part(key: str) -> str:
    """Return the stage or the checkpoint that a setting is of."""
    return key.partition(".")[0]


def facts(jobs: pd.DataFrame) -> dict[str, list[str]]:
    """Return each fact (commit, versions, hardware, start, resumes, FLOPs formula) -> its distinct values."""
    rows = jobs.to_dict("records")
    commits = [_commit(row) for row in rows]
    counted = [f"{row['stage']}: {row['flops_formula']}" for row in rows if not pd.isna(row["flops_formula"])]
    return {
        "commit": _distinct(commits),
        "versions": _distinct([_pairs(row["versions"]) for row in rows]),
        "hardware": _distinct([_pairs(row["hardware"]) for row in rows]),
        "started": _distinct([str(row["started"]) for row in rows])[:1],
        "resumed": [f"{resumed} of {len(rows)} jobs"] if (resumed := int((jobs.resumed > 0).sum())) else [],
        "FLOPs": _distinct(counted),
    }


def deterministic(run: Run) -> list[str]:
    """Return a text that names the jobs which computed deterministically; [] if none did."""
    nodes = run.all_nodes()
    asked = [node for node in nodes if run.graph.config(node).get("deterministic")]
    names = dict.fromkeys(f"{run.label(node)} of {node.arm}" for node in asked)
    return [] if not asked else ["every job"] if asked == nodes else [", ".join(names)]


def _commit(row: Mapping[Hashable, Any]) -> str:
    if pd.isna(row["commit"]):
        return f"none: run {outside_git(row)}"
    return f"{row['commit']} with uncommitted changes" if row["dirty"] else row["commit"]


def outside_git(row: Mapping[Hashable, Any]) -> str:
    """Return a phrase on the code of a run without a commit; it names the package if the run used it."""
    versions = row.get("versions")
    package = versions.get(suite.NAME) if isinstance(versions, dict) else None
    return f"outside git, from the package {suite.NAME} {package}" if package else "outside git"


def _distinct(values: list[str]) -> list[str]:
    return sorted(set(values))


def _pairs(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items() if entry != [])
    return str(value)


def citation(path: Path) -> str:
    """Return the BibTeX entry of a CITATION.cff; "" without the file."""
    if not path.exists():
        return ""
    cff = yaml.safe_load(path.read_text(encoding="utf-8"))
    authors = " and ".join("{" + author["name"] + "}" for author in cff["authors"] if "name" in author)
    year = str(cff["date-released"])[:4]
    return (
        f"@software{{encore,\n  title   = {{{cff['title']}}},\n  author  = {{{authors}}},\n"
        f"  version = {{{cff['version']}}},\n  year    = {{{year}}}\n}}"
    )


def commands(run: Run, report: str) -> str:
    """Return the commands that make this page again."""
    seeds = _seeds(run, report)
    if package := suite.package():
        arms = ["--arms", ",".join(run.arms)] if report == CHOSEN else []
        quickstart = ["--quickstart"] if report == "quickstart" else []
        command = ["encore", "run", str(run.file or run.name), "--scale", run.scale, "--seeds", seeds]
        wheel = f"encore_rl-{package.version}-py3-none-any.whl"
        return f"pip install {wheel}\n{shlex.join([*command, *arms, *quickstart])}"
    chosen = {"scale": run.scale, "seeds": seeds}
    if report == CHOSEN:
        chosen["arms"] = ",".join(run.arms)
    if run.file:
        chosen["recipe"] = str(run.file)
    words = shlex.join(f"{key}={value}" for key, value in chosen.items())
    page = f"results/{run.name}/{run.scale}/{report}.html"
    return f"pip install -e .\nsnakemake --cores all {page} --config {words}"


def _seeds(run: Run, report: str) -> str:
    """Return the seeds in the form of the command line: a number for the first seeds, otherwise a list."""
    if run.by_looks is not None:
        return AUTO
    first = run.recipe.selection(run.scale, report, len(run.seeds))[1]
    return str(len(first)) if first == [*run.seeds] else ",".join([*map(str, run.seeds), ""])
