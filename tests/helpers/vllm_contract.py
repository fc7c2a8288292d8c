"""Runs the project's own commands with a real vLLM on the CPU, with the limits that vllm_cpu_build tells."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import stage_runs

from encore.runtime import sentinel

HELPERS = Path(__file__).parent
PATH = (HELPERS / "vllm_cpu_build", HELPERS, HELPERS.parents[1])
# one thread; 1 GiB of keys and values; on any core, as others may be in use; nothing compiled
FOR_CPU = {"OMP_NUM_THREADS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
FOR_CPU |= {"PYTHONPATH": os.pathsep.join(map(str, PATH)), "VLLM_NO_USAGE_STATS": "1"}
FOR_CPU |= {"TORCH_COMPILE_DISABLE": "1"}
LONGEST = 900  # seconds of a process, on a machine that has much else to do

# learns in seconds to work out a sum, and is sometimes right
PRETRAIN: dict[str, Any] = stage_runs.PRETRAIN | {
    "corpus": {"documents": 3200, "mixture": {"chain": 1.0}},
    "model": {"hidden_size": 64, "layers": 2, "head_dim": 32, "max_position_embeddings": 128},
    "args": stage_runs.PRETRAIN["args"]
    | {"per_device_train_batch_size": 32, "gradient_accumulation_steps": 1, "learning_rate": 5e-3}
    | {"max_steps": 150, "save_steps": 150, "logging_steps": 50},
}
# of a random model with a published architecture: 32 numbers a head, the fewest that vLLM takes
SIZE = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2}
SIZE |= {"num_attention_heads": 2, "num_key_value_heads": 2}
# 4 rollouts of 2 updates each
GRPO: dict[str, Any] = stage_runs.GRPO["args"] | {
    **{"use_vllm": True, "vllm_importance_sampling_correction": True, "vllm_max_model_length": 64},
    **{"max_steps": 8, "steps_per_generation": 2, "save_steps": 2, "logging_steps": 1},
    **{"beta": 0.0, "sync_ref_model": False, "learning_rate": 1e-3, "max_completion_length": 32},
}


def grpo(policy: Path, mode: dict[str, Any], **keys: Any) -> list[str]:
    """The arguments of a `grpo` stage with vLLM; `mode` are further arguments of TRL."""
    model = {"path": sentinel.read_sentinel(policy)["model"]}
    config = stage_runs.GRPO | {"args": GRPO | mode, "model": model} | keys
    return ["grpo", *stage_runs.command("grpo", config)]


def start(folder: Path, command: list[str], **more: str) -> subprocess.Popen[str]:
    """Start Python with these arguments in `folder`, where it writes out.txt and err.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | FOR_CPU | more,
        stdout=(folder / "out.txt").open("a"),
        stderr=(folder / "err.txt").open("a"),
        text=True,
    )


def ended(folder: Path, process: subprocess.Popen[str], status: int = 0) -> None:
    """Wait until it has ended with this status; where it is another, say what it wrote."""
    try:
        found = process.wait(LONGEST)
    finally:
        process.kill()
    assert found == status, said(folder)[-9000:]


def said(folder: Path) -> str:
    """All that the processes in `folder` wrote."""
    return (folder / "out.txt").read_text() + (folder / "err.txt").read_text()


def values(folder: Path, metric: str) -> list[float]:
    """A metric of the `grpo` stage in `folder`, by its steps."""
    with (folder / "results/grpo/curve.csv").open() as file:
        return [float(row["value"]) for row in csv.DictReader(file) if row["metric"] == metric]
