"""The command `encore push`: lay a stage's model out for the Hub, with a card and results; upload on request.

A checkpoint's own folder stays as it is, so that its digest still fits. The layout is a folder of links to
its files, with README.md, results.json and .eval_results beside them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import yaml
from huggingface_hub import EvalResultEntry, HfApi, ModelCardData, constants, eval_result_entries_to_yaml
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id

from encore import validity
from encore.errors import UserError, first_line, whole
from encore.runtime import files, sentinel

FOLDER = Path("results/push")
Found = dict[str, dict[str, Any]]  # task -> the task's part of an evaluation
REFUSED: dict[int | None, str] = {  # the Hub's status -> what to do about it
    401: "it does not know you (401): `hf auth login`, or set HF_TOKEN",
    403: "the token may not write there (403): a token with the right to write, or another org/name",
}


def check_repo_id(name: str) -> None:
    """Raise UserError unless the Hub could have a model of this name."""
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise UserError(f"{name}: expected org/name, as the Hub has it: {first_line(error)}") from None


def lay_out(metrics_json: Path, name: str) -> Path:
    """Make and return the folder that would be uploaded as `name`. Raises UserError if there is no model."""
    check_repo_id(name)
    if metrics_json.is_dir():
        metrics_json = metrics_json / "metrics.json"
    try:
        made = sentinel.read_sentinel(metrics_json)
    except (OSError, ValueError):
        raise UserError(f"{metrics_json}: expected the metrics.json of a stage that is done") from None
    weights = Path(made["model"])
    if not (weights / "config.json").is_file():
        raise UserError(f"{metrics_json}: its product is no model, or is not here any more ({weights})")
    if reason := validity.of_stage(metrics_json):
        raise UserError(f"{metrics_json}: {reason}; run it again first")
    folder = FOLDER / name.replace("/", "--")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in sorted(path for path in weights.rglob("*") if path.is_file()):
        link = folder / file.relative_to(weights)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(file.resolve())
    evaluations = _evaluations(metrics_json, made["digest"])
    files.write_json(folder / "results.json", _as_lm_eval(evaluations, name))
    if entries := _of_the_hub(evaluations):
        files.write(folder / constants.EVAL_RESULTS_FOLDER / "encore.yaml", entries)
    files.write(folder / "README.md", _card(metrics_json, made, evaluations, name))
    return folder


def upload(folder: Path, name: str, public: bool) -> str:
    """Upload a layout, and return the address of the commit.

    Raises UserError if the Hub or the network refuses.
    """
    api = HfApi()
    try:
        api.create_repo(name, private=not public, exist_ok=True)
        return str(
            api.upload_folder(
                folder_path=str(folder), repo_id=name, commit_message="Encore: model, card, results"
            )
        )
    except (
        OSError,
        httpx.HTTPError,
        RuntimeError,
    ) as error:  # errors of the Hub, of the network, and of the Hub's storage
        why = _why(error)
        raise UserError(
            f"{name}: not uploaded to {api.endpoint}: {why}; {folder} has all that was to go"
        ) from None


def _why(error: BaseException) -> str:
    """Return what went wrong and what to do, by the error's cause: an upload's error only names a file."""
    cause = error.__cause__ or error
    status = getattr(getattr(cause, "response", None), "status_code", None)
    return REFUSED.get(status) or f"{type(cause).__name__}: {whole(cause)}"


def _as_lm_eval(evaluations: Found, name: str) -> dict[str, Any]:
    """Return evaluations in the form of lm-eval's results.json.

    Standard errors come from the 95% intervals.
    """
    results: Found = {}
    for task, scores in evaluations.items():
        results[task] = {"alias": task}
        for metric, value in scores["metrics"].items():
            results[task][f"{metric},none"] = value["value"]
            results[task][f"{metric}_stderr,none"] = (value["high"] - value["low"]) / (2 * 1.96)
    items = {
        task: {"original": scores["items"], "effective": scores["items"]}
        for task, scores in evaluations.items()
    }
    return {"model_name": name, "results": results, "n-samples": items, "higher_is_better": {}}


def _of_the_hub(evaluations: Found) -> str:
    """Return the measurements on data sets of the Hub, as YAML for its leaderboards; "" if there are none."""
    entries = [
        EvalResultEntry(
            dataset_id=scores["data_set"]["id"],
            task_id=scores["data_set"]["task_id"],
            dataset_revision=scores["data_set"].get("revision"),
            value=scores["metrics"]["accuracy"]["value"],
            notes=f"Encore, task {task}: accuracy of {scores['samples']} samples each "
            f"of {scores['items']} items",
        )
        for task, scores in evaluations.items()
        if "data_set" in scores and "accuracy" in scores["metrics"]
    ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False) if entries else ""


def _card(metrics_json: Path, made: dict[str, Any], evaluations: Found, name: str) -> str:
    """Return README.md: where the model comes from, how it was trained, its results and its limits."""
    stage = metrics_json.parent
    where = json.loads((stage / "provenance.json").read_text(encoding="utf-8"))
    shown = [
        (task, metric, scores["metrics"][metric]["value"])
        for task, scores in evaluations.items()
        for metric in scores["metrics"]
        if metric in ("accuracy", "score", "gold")
    ]
    data = ModelCardData(
        model_name=name, library_name="transformers", pipeline_tag="text-generation",
        tags=["encore", "reinforcement-learning", made["kind"]],
    )  # fmt: skip
    rows = "".join(f"| {task} | {metric} | {value:.4g} |\n" for task, metric, value in shown)
    config = json.dumps(made["config"], indent=1, sort_keys=True)
    upstream = "".join(f"- {role}: `{path}`\n" for role, path in made.get("upstream", {}).items())
    return f"""---
{data.to_yaml()}
---

# {name}

Made by Encore: stage `{made["kind"]}` of `{stage.as_posix()}`, seed {made["seed"]}, at commit
{where.get("commit")}; {where.get("steps")} optimizer steps, {where.get("tokens")} tokens. Its digest was
{made["digest"]}.

{upstream and f"It was made from:{chr(10)}{chr(10)}{upstream}"}
## What it was measured to do

| task | metric | value |
|---|---|---|
{rows or "| - | - | not evaluated |" + chr(10)}
All of it, with standard errors, is in `results.json` in lm-eval's form.

## What it is not

The product of an experiment with one seed. Nobody has looked at what else it says; it is meant for no other
use.

## How it was trained

```json
{config}
```
"""


def _evaluations(metrics_json: Path, digest: str) -> Found:
    """Return task -> the measurements of the model with this digest, from its run's evaluations."""
    measured: Found = {}
    for file in sorted((metrics_json.parent.parent / "evals").glob("*.json")):
        evaluation = json.loads(file.read_text(encoding="utf-8"))
        if evaluation.get("digest") == digest and "_sensitivity_" not in file.stem:
            measured |= evaluation["tasks"]
    return measured
