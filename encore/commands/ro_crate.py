"""A published record as a Workflow Run RO-Crate: its files, the workflow, and the times of its runs.

The profile is https://www.researchobject.org/workflow-run-crate, which WorkflowHub and Zenodo's tools read.
"""

from datetime import timedelta
from pathlib import Path

import pandas as pd

from encore.errors import UserError
from encore.runtime import suite

PROFILES = (
    "https://w3id.org/ro/wfrun/process/0.5",
    "https://w3id.org/ro/wfrun/workflow/0.5",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.1",
)
LICENSE = "https://spdx.org/licenses/Apache-2.0"
INPUTS = ("registered.yaml", "packages.txt")  # files of a record that were there before its runs


def export(record: Path, out: Path) -> Path:
    """Write the crate of a record, which is a folder, into `out`, and return the crate's metadata file.

    Raises UserError if the package `rocrate` is missing, or if the folder is no record.
    """
    try:
        # imported here, because the package may be missing
        from rocrate.model import ContextEntity
        from rocrate.rocrate import ROCrate  # here too
    except ImportError:
        raise UserError("to write a crate: pip install rocrate") from None
    if not (record / "runs.csv.xz").is_file() or not (record / "claims.csv").is_file():
        raise UserError(f"{record}: expected the folder of a record, with claims.csv and runs.csv.xz")
    runs = pd.read_csv(record / "runs.csv.xz")
    began = pd.to_datetime(runs.started)
    ended = began + runs.wall_s.map(lambda seconds: timedelta(seconds=seconds))
    recipe = record.resolve().name.rpartition("-")[0]
    commits = ", ".join(dict.fromkeys(runs.commit.dropna()))
    crate = ROCrate()
    crate.name = f"Encore: {record.resolve().name}"
    crate.description = f"The record of the recipe {recipe}, run at commit {commits}."
    crate.license = LICENSE
    crate.root_dataset["conformsTo"] = [
        crate.add(ContextEntity(crate, profile, properties={"@type": "CreativeWork", "name": profile}))
        for profile in PROFILES
    ]
    workflow = crate.add_workflow(suite.folder() / "Snakefile", "Snakefile", main=True, lang="snakemake")
    results = {
        path.name: crate.add_file(path, path.name) for path in sorted(record.iterdir()) if path.is_file()
    }
    inputs = [results.pop(name) for name in INPUTS if name in results]
    for file in sorted((suite.folder() / "recipes" / recipe).glob("*.yaml")):
        inputs.append(crate.add_file(file, f"recipe/{file.name}"))
    crate.add_action(
        instrument=workflow,
        identifier="#run",
        object=inputs,
        result=[*results.values()],
        properties={
            "name": f"Runs of {recipe}: {len(runs)} stages",
            "startTime": began.min().isoformat(),
            "endTime": ended.max().isoformat(),
            "actionStatus": "http://schema.org/CompletedActionStatus",
        },
    )
    crate.write(out)
    return out / "ro-crate-metadata.json"
