"""How long `encore judge` takes for a large study, and how much memory.

    python tests/benchmarks/judge_speed.py --out FILE.csv [--runs 1000] [--steps 10000]

A run is a file with the step and four metrics; there are 20 arms and 19 claims. A study is judged once for
each form of the files, in a process of its own. `wall_s` is the time of the whole command, imports and page
included. `cpu_s` counts all its processes. `memory_mib` is the largest resident memory of one of them; beside
the first there is one for each core. `load` is how many processes the machine was running before: with other
work to do it takes longer.

Columns: form, runs, steps, mib (size of all files), metric, value, cores, commit, machine.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import yaml

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from encore.runtime import provenance  # noqa: E402

METRICS = ("critic/rewards/mean", "actor/entropy", "actor/kl", "response_length/mean")
FORMS = ("csv", "jsonl")
ARMS = 20
COLUMNS = ("form", "runs", "steps", "mib", "metric", "value", "cores", "commit", "machine")


def study(folder: Path, form: str, runs: int, steps: int) -> Path:
    """Write the files of a study, of random numbers, and return the study."""
    rng = np.random.default_rng(0)
    (folder / "logs").mkdir(parents=True)
    for run in range(runs):
        rows = rng.normal(0.5, 0.1, (steps, len(METRICS))).round(6).tolist()
        if form == "csv":
            lines = [f"{step},{','.join(map(str, row))}" for step, row in enumerate(rows, 1)]
            lines.insert(0, ",".join(["step", *METRICS]))
        else:
            entries = [
                {"step": step} | dict(zip(METRICS, row, strict=True)) for step, row in enumerate(rows, 1)
            ]
            lines = [*map(json.dumps, entries)]
        log = folder / f"logs/arm{run % ARMS}-{run // ARMS}.{form}"
        log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    claims = {
        f"arm{arm}-ends-higher": {
            "says": f"Arm {arm} ends higher.",
            "test": {"metric": "last_fifth/reward", "of": f"arm{arm}/train", "against": "arm0/train"}
            | {"direction": "higher", "margin": 0.02},
        }
        for arm in range(1, ARMS)
    }
    logs = {"files": [f"logs/{{arm}}-{{seed}}.{form}"], "metrics": {"reward": METRICS[0]}}
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({"title": "Speed", "runs": {"train": logs}, "claims": claims}))
    return path


def spent(command: list[str], folder: Path, said: IO[str] | None = None) -> dict[str, float]:
    """Run a command in a folder, and return what that took; the file `said` gets all that it prints."""
    load, began = os.getloadavg()[0], time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=said or subprocess.DEVNULL, stderr=said)
    _, status, usage = os.wait4(process.pid, 0)  # of this child and its own children alone
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(command)} failed")
    return {
        "wall_s": time.perf_counter() - began,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "memory_mib": usage.ru_maxrss / 1024,
        "load": load,
    }


def rows(runs: int, steps: int) -> Iterator[dict[str, object]]:
    """Yield a row for each form and metric."""
    for form in FORMS:
        with tempfile.TemporaryDirectory() as temporary:
            path = study(Path(temporary), form, runs, steps)
            size = sum(file.stat().st_size for file in path.parent.rglob("*")) / 2**20
            command = [sys.executable, "-m", "encore", "judge", str(path)]
            for metric, value in spent(command, ROOT).items():
                yield {
                    "form": form,
                    "runs": runs,
                    "steps": steps,
                    "mib": round(size),
                    "metric": metric,
                    "value": round(value, 1),
                    "cores": os.cpu_count(),
                    "commit": provenance.commit()[0],
                    "machine": provenance.processor(),
                }


def write(out: Path, columns: Sequence[str], measured: Iterable[dict[str, object]]) -> None:
    """Write the rows of a benchmark into a CSV."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(measured)


def main() -> int:
    """Measure, and write the CSV."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    measured = [*rows(options.runs, options.steps)]
    write(options.out, COLUMNS, measured)
    for row in measured:
        print(f"{row['form']}, {row['runs']} runs of {row['steps']} steps: {row['metric']} {row['value']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
