"""Speed of the `grpo` stage against a plain TRL script on the same work, in alternating processes.

    python tests/benchmarks/grpo_speed.py --out FILE.csv [--pairs 3] [--policy …/metrics.json]
    python tests/benchmarks/grpo_speed.py --out FILE.csv --recipe r1_zero --scale small --steps 2

All train the same model with the same arguments on the same prompts and rewards, on one thread, and on the
GPU if torch sees one. The stage
also checks its inputs, records each completion and saves resumable checkpoints; the plain script does not.
Side `stage` samples as the script does and gets the same completions; `lean` has `sampler: lean`, as most
recipes of scale cpu, and draws others from the same law. With `--recipe`, side `stage` is stage `grpo` of the
recipe's first arm as it stands, for that many steps.

Columns: pair, side, steps, tokens, train_s, s_per_step, tokens_per_s, wall_s and cpu_s (both with imports),
peak_rss_mb, gpu_memory_mib (what torch took of the GPU; 0 without one). The last rows are `stage / plain` and
`lean / plain` as medians over pairs, with the commit and the processor or GPU measured.
"""

import argparse
import json
import math
import resource
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plain_trl
from plain_trl import timed, write

from encore.models import language_model
from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all
from encore.runtime import provenance

TASK = {"world": "chain", "terms": [3, 8]}
TEMPLATE = "<user>{question}<assistant>"
PRETRAIN = {
    "task": TASK,
    "template": TEMPLATE,
    "corpus": {"documents": 12800, "mixture": {"direct": 0.5, "chain": 0.4, "truncated": 0.1}},
    "model": {"hidden_size": 128, "layers": 2, "head_dim": 32},
    "args": {
        "per_device_train_batch_size": 64,
        "gradient_accumulation_steps": 2,
        "learning_rate": 2e-3,
        "lr_scheduler_type": "cosine",
        "max_steps": 100,
    },
}
GRPO = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 2048,
    "rewards": {"accuracy": 1.0, "format": 0.1},
    "args": {  # 4 updates a rollout of 32 prompts x 8 completions
        "per_device_train_batch_size": 64,
        "gradient_accumulation_steps": 1,
        "steps_per_generation": 4,
        "num_generations": 8,
        "num_iterations": 1,
        "max_completion_length": 64,
        "learning_rate": 1e-4,
        "lr_scheduler_type": "constant",
        "loss_type": "grpo",
        "beta": 0.0,
        "temperature": 1.0,
        "logging_steps": 1,
        "max_steps": 40,
    },
}
SEED = 0
MEASURED = ("train_s", "s_per_step", "tokens_per_s", "wall_s", "cpu_s", "peak_rss_mb", "gpu_memory_mib")


@dataclass(frozen=True)
class Work:
    """What each side trains: its stage's configuration by the side's name, and the model they begin from."""

    sides: dict[str, dict[str, Any]]
    model: Path  # the model's folder
    policy: Path | None  # metrics.json of the stage that made the model; None if the configuration names it


def generated(policy: Path, config: dict[str, Any]) -> Work:
    """Return the work of `config` on sums with the base model of the stage that wrote `policy`."""
    sides = {"stage": config, "lean": {**config, "sampler": "lean"}, "plain": config}
    return Work(sides, Path(json.loads(policy.read_text())["model"]), policy)


def of_recipe(recipe: str, scale: str, steps: int) -> Work:
    """Return the work of stage `grpo` of the recipe's first arm, cut to `steps` updates."""
    graph = Graph(load_all())
    node = Node(recipe, scale, graph.recipes[recipe].arms(scale)[0], SEED, "grpo", "stage")
    config = graph.config(node)
    config = {**config, "args": {**config["args"], "max_steps": steps}}
    source = language_model.locate(graph.model_of(node))
    return Work({"stage": config, "plain": config}, Path(language_model.folder_of(source)), None)


def plain(config: dict[str, Any], model: Path, out: Path) -> None:
    """Train as a TRL user would write it; runs in a process of its own."""
    import torch

    torch.set_num_threads(1)
    trainer = plain_trl.trainer(config, model, SEED, out.parent)
    started = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - started
    state = trainer.state
    run = {"steps": state.global_step, "tokens": state.num_input_tokens_seen, "wall_s": seconds}
    out.write_text(json.dumps(run | provenance.gpu_memory()))


def stage(kind: str, config: dict[str, Any], folder: Path, policy: Path | None = None) -> list[str]:
    """Return the command that trains a stage in `folder`."""
    inputs = ["--input", f"policy={policy}"] if policy else []
    return [
        *(sys.executable, "-m", "encore.stages", kind, "--config", json.dumps(config)),
        *("--seed", str(SEED), "--name", f"benchmark/{kind}", *inputs),
        *("--checkpoints", str(folder / "checkpoints"), "--out", str(folder / "metrics.json")),
    ]


def measure(side: str, work: Work, folder: Path) -> dict[str, Any]:
    """Run one side and return its row of the table, without the pair."""
    folder.mkdir(parents=True)
    config = work.sides[side]
    if side == "plain":
        result = folder / "plain.json"
        command = [sys.executable, __file__, "--plain", json.dumps(config)]
        command += ["--policy", str(work.model), "--out", str(result)]
    else:
        command, result = stage("grpo", config, folder, work.policy), folder / "provenance.json"
    before = core_seconds()
    wall, memory = timed(command, folder / "log")
    run = json.loads(result.read_text())
    return {
        "side": side,
        "steps": run["steps"],
        "tokens": run["tokens"],
        "train_s": run["wall_s"],
        "s_per_step": run["wall_s"] / run["steps"],
        "tokens_per_s": run["tokens"] / run["wall_s"],
        "wall_s": wall,
        "cpu_s": core_seconds() - before,
        "peak_rss_mb": memory,
        "gpu_memory_mib": run.get("gpu_memory_mib", 0),
    }


def core_seconds() -> float:
    """Seconds that all processes waited for have kept a core busy."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ratio(rows: list[dict[str, Any]], side: str) -> dict[str, Any]:
    """The row of `side` / plain, the median over pairs."""
    pairs = sorted({row["pair"] for row in rows})
    by = {(row["pair"], row["side"]): row for row in rows}

    def median(column: str) -> float:
        plain = [by[pair, "plain"][column] or math.nan for pair in pairs]  # without a GPU its memory is 0
        return statistics.median(
            by[pair, side][column] / value for pair, value in zip(pairs, plain, strict=True)
        )

    medians = {column: median(column) for column in MEASURED}
    hardware = provenance.hardware()
    where = {"commit": provenance.commit()[0], "machine": ", ".join(hardware["gpus"]) or hardware["cpu"]}
    return {"pair": "median", "side": f"{side} / plain", "steps": "", "tokens": "", **medians, **where}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument(
        "--policy", type=Path, help="metrics.json of a base model (default: train a small one)"
    )
    parser.add_argument("--recipe", help="time stage grpo of this recipe, with the recipe's own model")
    parser.add_argument("--scale", default="small")
    parser.add_argument("--steps", type=int, default=2, help="updates, of a recipe (default: 2)")
    parser.add_argument(
        "--plain", type=json.loads, help=argparse.SUPPRESS
    )  # the child process of a plain run
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.plain:
        plain(options.plain, options.policy, options.out)
        return 0
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        policy = options.policy or folder / "base" / "metrics.json"
        if not options.policy and not options.recipe:
            policy.parent.mkdir()
            timed(stage("pretrain", PRETRAIN, policy.parent), policy.parent / "log")
        work = (
            of_recipe(options.recipe, options.scale, options.steps)
            if options.recipe
            else generated(policy, GRPO)
        )
        for pair in range(options.pairs):
            # alternate which goes first, so that a drift of the machine's speed hits both alike
            for side in [*work.sides] if pair % 2 == 0 else [*reversed(work.sides)]:
                rows.append({"pair": pair, **measure(side, work, folder / f"{pair}-{side}")})
                print(f"pair {pair} {side}: {rows[-1]['tokens_per_s']:.0f} tok/s", flush=True)
    summary = [ratio(rows, side) for side in work.sides if side != "plain"]
    write([*rows, *summary], list(summary[0]), options.out)
    for row in summary:
        print(f"{row['side']}: {row['tokens_per_s']:.2f} x tokens/s, {row['peak_rss_mb']:.2f} x memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
