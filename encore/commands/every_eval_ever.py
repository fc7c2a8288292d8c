"""The results of an evaluation in the form of Every Eval Ever: a file of all scores, and a file of samples.

The form is schema version 0.3.0 of https://github.com/evaleval/every_eval_ever. Only scores of which more is
better are written: the form has no place for lengths and the like. Samples that nothing has verified have no
score and are left out.
"""

import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from encore.commands.push import check_repo_id
from encore.errors import UserError, first_line
from encore.runtime import files

SCHEMA = "0.3.0"
SHARES = ("accuracy", "format_rate", "pass@", "maj@")  # how the names of scores from 0 to 1 begin
UNBOUNDED = ("score", "gold")
Json = dict[str, object]


@dataclass(frozen=True)
class Evaluation:
    """The results of an evaluation, with what identifies them in both files."""

    tasks: Mapping[str, Any]  # name -> items, metrics and more, as evals.measure writes them
    digest: str  # the model's
    model: str  # org/name
    made: int  # when the files are written, in seconds since 1970

    @property
    def identifier(self) -> str:
        """The evaluation_id; another export of the same results has another one."""
        return f"encore/{self.model}/{self.made}"


def export(results: Path, model: str, out: Path) -> list[Path]:
    """Write the aggregate file and the file of samples below `out`, and return their paths.

    `results` is the results file of an evaluation.

    Raises UserError if the name is no org/name, or if there are no results with their samples.
    """
    check_repo_id(model)
    if "/" not in model:
        raise UserError(f"{model}: expected org/name")
    try:
        read = json.loads(results.read_text(encoding="utf-8"))
        evaluation = Evaluation(read["tasks"], str(read["digest"]), model, int(time.time()))
        samples = _samples_of(results).read_text(encoding="utf-8")
        rows = [json.loads(line) for line in samples.split("\n") if line]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        what = f"expected the results of an evaluation, with its samples beside: {first_line(error)}"
        raise UserError(f"{results}: {what}") from None
    name = str(uuid.uuid4())
    place = Path("data", "encore", *model.split("/"))
    lines = "".join(json.dumps(row) + "\n" for row in _instances(evaluation, rows))
    whole = _whole(evaluation) | {
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": (place / f"{name}_samples.jsonl").as_posix(),
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(lines.encode()).hexdigest(),
            "total_rows": lines.count("\n"),
        }
    }
    (out / place).mkdir(parents=True, exist_ok=True)
    files.write(out / place / f"{name}_samples.jsonl", lines)
    files.write_json(out / place / f"{name}.json", whole)
    return [out / place / f"{name}.json", out / place / f"{name}_samples.jsonl"]


def _samples_of(results: Path) -> Path:
    """Return where the samples of results lie: `after.samples.jsonl`, or samples.jsonl of `encore eval`."""
    beside = results.with_name(f"{results.stem}.samples.jsonl")
    return beside if beside.exists() else results.with_name("samples.jsonl")


def _whole(evaluation: Evaluation) -> Json:
    organization = evaluation.model.partition("/")[0]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": evaluation.identifier,
        "retrieved_timestamp": str(evaluation.made),
        "source_metadata": {
            "source_name": "Encore",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "first_party",
        },
        "eval_library": {"name": "encore", "version": version("encore-rl")},
        "model_info": {
            "name": evaluation.model,
            "id": evaluation.model,
            "developer": organization,
            "additional_details": {
                "digest": evaluation.digest,
                "deployment_type": "self_deployed",
                "model_availability": "unknown",
            },
        },
        "evaluation_results": [*_results(evaluation)],
    }


def _results(evaluation: Evaluation) -> Iterator[Json]:
    """Yield a result for each score of each task."""
    for task, scores in evaluation.tasks.items():
        for metric, number in scores["metrics"].items():
            share = metric.startswith(SHARES)
            if number["value"] is None or not (share or metric in UNBOUNDED):
                continue
            ends: Json = {"min_score": 0.0, "max_score": 1.0}
            interval = {"lower": number["low"], "upper": number["high"], "confidence_level": 0.95}
            yield {
                "evaluation_result_id": f"{task}/{metric}",
                "evaluation_name": task,
                "source_data": _data(task, scores.get("data_set")),
                "metric_config": {"metric_id": metric, "metric_name": metric, "lower_is_better": False}
                | ({"score_type": "continuous", **ends} if share else {}),
                "score_details": {
                    "score": number["value"],
                    "uncertainty": {"confidence_interval": interval, "num_samples": scores["items"]},
                },
            }


def _data(task: str, data_set: Mapping[str, str] | None) -> Json:
    if data_set is None:
        return {"dataset_name": task, "source_type": "other"}
    return {"dataset_name": task, "source_type": "hf_dataset", "hf_repo": data_set["id"]}


def _instances(evaluation: Evaluation, rows: list[Mapping[str, Any]]) -> Iterator[Json]:
    """Yield a row for each verified completion."""
    for row in rows:
        reference = str(row["answer"])
        digest = hashlib.sha256((row["question"] + reference).encode()).hexdigest()
        sampled = zip(row.get("completions", ()), row["correct"], row["votes"], strict=False)
        for number, (completion, correct, answer) in enumerate(sampled):
            if correct is None:
                continue
            yield {
                "schema_version": SCHEMA,
                "evaluation_id": evaluation.identifier,
                "model_id": evaluation.model,
                "evaluation_name": row["task"],
                "evaluation_result_id": f"{row['task']}/accuracy",
                "sample_id": f"{row['task']}/{row['item']}",
                "sample_hash": digest,
                "interaction_type": "single_turn",
                "input": {"raw": row["question"], "reference": [reference]},
                "output": {"raw": [completion]},
                "answer_attribution": [
                    {
                        "turn_idx": 0,
                        "source": "output.raw",
                        "extracted_value": "" if answer is None else str(answer),
                        "extraction_method": "custom",
                        "is_terminal": True,
                    }
                ],
                "evaluation": {"score": float(correct), "is_correct": bool(correct)},
                "metadata": {"completion": str(number)},
            }
