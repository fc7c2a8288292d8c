"""Wall-clock time of a grid, objectives x seeds, by our workflow and by one plain TRL script.

    python tests/benchmarks/grid_speed.py --out FILE.csv [--recipe objectives] [--arms a b] [--seeds 1] …

Ours: `snakemake --cores N` trains and evaluates the checkpoints in a copy of this folder, timed from start to
end. Plain: one process trains and evaluates them one after another with GRPOTrainer and `generate`, on one
thread or on all cores, whichever a short trial finds faster. Both have the same base model, prompts, rewards,
arguments, updates and held-out problems. The base model is trained beforehand and not timed.

Columns: pair, side, arm, seed, metric, value, low, high. `wall_s` is that of a side's whole grid, `accuracy`
held-out, `reward` the mean over training (its learning curve in one number). The last rows are the ratio
plain / ours of wall-clock times (median over pairs) and mean differences, ours - plain, paired by arm and
seed, with 95% intervals by Student's t. An arm whose objective TRL has no argument for is timed with the
nearest objective that TRL has, which costs the same, and is left out of the differences.

`import_share` is the share of imports in the core-seconds `cpu_s`: on side `ours` of the grid, whose jobs are
forked from one process that has imported all; on side `ours, plain processes` of one run without that.
"""

import argparse
import csv
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import plain_trl
import yaml
from plain_trl import ROOT, timed, write

from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all
from encore.recipe.recipe import Recipe
from encore.runtime import provenance
from encore.workflow.warm.client import VARIABLE

CODE = ("encore", "recipes", "evals", "analysis", "profiles", "snakemake_logger_plugin_encore")
OBJECTIVE = ("advantage", "importance_ratio", "dynamic_sampling", "old_logp_noise", "replay")  # beyond TRL's
Row = dict[str, Any]
Run = dict[str, Any]  # arm, seed, stage (its node), config, tasks, policy (metrics.json), comparable


def copied(folder: Path, recipe: str, settings: list[str]) -> dict[str, Recipe]:
    """Our code, copied to `folder`; the recipe changed at scale cpu by `settings` (path.of.key=json)."""
    for name in CODE:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "Snakefile", folder)
    for name in ("results/tiny_lm", "checkpoints/tiny_lm"):  # the base models, if they are there
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
    path = load_all(folder / "recipes")[recipe].files.file()
    spec = yaml.safe_load(path.read_text())
    for setting in settings:
        keys, _, value = setting.partition("=")
        *parents, last = keys.split(".")
        at = spec["scales"]["cpu"]
        for key in parents:
            at = at.setdefault(key, {})
        at[last] = json.loads(value)
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return load_all(folder / "recipes")


def grid(recipes: dict[str, Recipe], recipe: str, arms: list[str], seeds: int) -> list[Run]:
    """The runs of the grid: one of each arm and seed, of the stage that checkpoint `after` comes from."""
    runs = []
    for arm in arms or recipes[recipe].arms("cpu"):
        for seed in recipes[recipe].selection("cpu", "report", seeds)[1]:
            evaluated = Node(recipe, "cpu", arm, seed, "after", "eval")
            stage = Graph(recipes).inputs(evaluated)["model"]
            config = Graph(recipes).config(stage)
            runs.append(
                {
                    "arm": arm,
                    "seed": seed,
                    "folder": stage.folder,
                    "scores": evaluated.sentinel,
                    "config": config,
                    "tasks": Graph(recipes).config(evaluated)["tasks"],
                    "policy": Graph(recipes).inputs(stage)["policy"].sentinel,
                    "comparable": not any(key in config for key in OBJECTIVE),
                }
            )
    return runs


def ours(runs: list[Run], folder: Path, recipe: str, cores: int) -> list[Row]:
    """Run the grid by the workflow, after removing what an earlier pair left of it."""
    for name in ("results", "checkpoints"):
        shutil.rmtree(folder / name / recipe, ignore_errors=True)
    wall, cpu = snakemake(folder, [run["scores"] for run in runs], cores)
    rows = [row("ours", wall_s=wall), row("ours", cpu_s=cpu)]
    for run in runs:
        task, found = next(iter(json.loads((folder / run["scores"]).read_text())["tasks"].items()))
        assert task == next(iter(run["tasks"]))
        with (folder / run["folder"] / "curve.csv").open() as file:
            curve = [float(r["value"]) for r in csv.DictReader(file) if r["metric"] == "reward"]
        rows += row_of(run, "ours", found["metrics"]["accuracy"]["value"], curve)
    return rows


def snakemake(folder: Path, targets: list[str], cores: int) -> tuple[float, float]:
    """Wall-clock and core-seconds that the workflow takes to make `targets`."""
    command = [sys.executable, "-m", "snakemake", "--cores", str(cores), *dict.fromkeys(targets)]
    return measured(command, folder, threads=None)


def measured(command: list[str], folder: Path, threads: int | None = 1) -> tuple[float, float]:
    """Wall-clock and core-seconds of a process and all it has waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall, _ = timed(command, folder / "ours.log", folder, threads)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def imports(runs: list[Run], folder: Path, recipe: str, cores: int, grid_cpu: float) -> list[Row]:
    """The share of imports in the grid's core-seconds, and in those of one run by plain processes."""
    code = "from encore.runtime import environment as e; e.few_collections(); e.quiet_environment(False); "
    stages, evaluation = (
        "import encore.stages.__main__ as m; m.load(); ",
        "import evals.evaluate as m; m.load(); ",
    )
    kind = f"import encore.stages.__main__, encore.stages.{runs[0]['config']['run']}"

    def cpu(imported: str) -> float:
        return measured([sys.executable, "-c", code + imported], folder)[1]

    shutil.rmtree(folder / "results" / recipe)
    shutil.rmtree(folder / "checkpoints" / recipe)
    os.environ[VARIABLE] = "off"
    _, plain_cpu = snakemake(folder, [runs[0]["scores"]], cores)
    del os.environ[VARIABLE]
    return [
        row("ours", import_share=cpu(stages + evaluation) / grid_cpu),
        row("ours, plain processes", runs[0]["arm"], runs[0]["seed"], cpu_s=plain_cpu),
        row("ours, plain processes", runs[0]["arm"], runs[0]["seed"],
            import_share=(cpu(kind) + cpu(evaluation)) / plain_cpu),
    ]  # fmt: skip


def plain(runs: list[Run], folder: Path, threads: int) -> list[Row]:
    """Run the grid by the plain script, in a process of its own with so many threads."""
    spec, out = folder / "plain.json", folder / "plain_out.json"
    spec.write_text(json.dumps(runs))
    command = [sys.executable, __file__, "--plain", str(spec), "--out", str(out)]
    wall, _ = timed(command, folder / "plain.log", folder, threads)
    results = json.loads(out.read_text())
    rows = [row("plain", wall_s=wall)]
    for run, (accuracy, curve) in zip(runs, results, strict=True):
        rows += row_of(run, "plain", accuracy, curve)
    return rows


def script(runs: list[Run]) -> list[tuple[float, list[float]]]:
    """What the plain script does: accuracy and logged rewards of each run."""
    results = []
    for run in runs:
        policy = Path(json.loads(Path(run["policy"]).read_text())["model"])
        with tempfile.TemporaryDirectory() as temporary:
            trainer = plain_trl.trainer(run["config"], policy, run["seed"], Path(temporary))
            trainer.train()
        task = next(iter(run["tasks"].values()))
        score = plain_trl.accuracy(trainer.model, trainer.processing_class, task, run["seed"])
        results.append((score, [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]))
    return results


def fastest(runs: list[Run], folder: Path) -> int:
    """One thread or as many as cores, whichever makes two rollouts of the plain script faster."""
    short = json.loads(json.dumps(runs[:1]))
    args = short[0]["config"]["args"]
    args["max_steps"] = 2 * args["steps_per_generation"]
    for task in short[0]["tasks"].values():
        task["items"] = 32
    return min({1, os.cpu_count() or 1}, key=lambda threads: plain(short, folder, threads)[0]["value"])


def row(side: str, arm: str = "all", seed: Any = "", **metric: float) -> Row:
    ((name, value),) = metric.items()
    return {"pair": "", "side": side, "arm": arm, "seed": seed, "metric": name, "value": value}


def row_of(run: Run, side: str, accuracy: float, curve: list[float]) -> list[Row]:
    arm, seed = run["arm"], run["seed"]
    return [row(side, arm, seed, accuracy=accuracy), row(side, arm, seed, reward=sum(curve) / len(curve))]


def summary(rows: list[Row], runs: list[Run]) -> list[Row]:
    """The ratio of times, and the mean paired differences, with intervals, of two or more runs."""
    from scipy.stats import ttest_1samp

    value = {(r["pair"], r["side"], r["arm"], r["seed"], r["metric"]): r["value"] for r in rows}
    pairs = sorted({r["pair"] for r in rows})
    ratios = [value[p, "plain", "all", "", "wall_s"] / value[p, "ours", "all", "", "wall_s"] for p in pairs]
    summarised = [row("plain / ours", wall_s=statistics.median(ratios))]
    for metric in ("accuracy", "reward"):
        both = [(run["arm"], run["seed"]) for run in runs if run["comparable"]]
        differences = [  # of each run once: a further pair repeats its bits
            statistics.mean(value[p, "ours", *of, metric] - value[p, "plain", *of, metric] for p in pairs)
            for of in both
        ]
        if len(differences) > 1:
            interval = ttest_1samp(differences, 0.0).confidence_interval(0.95)
            mean = row(
                "ours - plain", arm=f"{len(differences)} runs", **{metric: statistics.mean(differences)}
            )
            summarised.append({**mean, "low": float(interval.low), "high": float(interval.high)})
    where = {"commit": provenance.commit()[0], "cpu": provenance.processor()}
    return [{"pair": "median" if "/" in r["side"] else "mean", **r, **where} for r in summarised]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--recipe", default="objectives")
    parser.add_argument("--arms", nargs="*", default=[], help="default: all of the recipe's")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=JSON", help="e.g. stages.grpo.args.max_steps=8"
    )
    parser.add_argument("--plain", type=Path, help=argparse.SUPPRESS)  # the child process of a plain run
    options = parser.parse_args()
    if options.plain:
        options.out.write_text(json.dumps(script(json.loads(options.plain.read_text()))))
        return 0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        runs = grid(copied(folder, options.recipe, options.set), options.recipe, options.arms, options.seeds)
        print(f"{len(runs)} runs; base models first", flush=True)
        snakemake(folder, [run["policy"] for run in runs], options.cores)
        threads = fastest(runs, folder)
        for pair in range(options.pairs):
            sides = {
                "ours": lambda: ours(runs, folder, options.recipe, options.cores),
                "plain": lambda: plain(runs, folder, threads),
            }
            # alternate which goes first, so that a drift of the machine's speed hits both alike
            for side in ("ours", "plain") if pair % 2 == 0 else ("plain", "ours"):
                began = time.strftime("%H:%M:%S")
                found = sides[side]()
                rows += [{**one, "pair": pair} for one in found]
                print(f"pair {pair} {side}: {found[0]['value']:.0f} s since {began}", flush=True)
        cpu = statistics.median(one["value"] for one in rows if one["metric"] == "cpu_s")
        shares = imports(runs, folder, options.recipe, options.cores, cpu)
    last = summary(rows, runs)
    rows += shares
    columns = ["pair", "side", "arm", "seed", "metric", "value", "low", "high", "commit", "cpu"]
    write([*rows, *last], columns, options.out)
    print(f"plain on {threads} threads / ours on {options.cores} cores: {last[0]['value']:.2f} x wall-clock")
    for one in shares:
        if one["metric"] == "import_share":
            print(f"{one['side']}: {one['value']:.1%} of the core-seconds are imports")
    for one in last[1:]:
        print(f"{one['metric']}, ours - plain: {one['value']:+.4f} [{one['low']:+.4f}, {one['high']:+.4f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
