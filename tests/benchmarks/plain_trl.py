"""What a TRL user would write instead of a recipe: a plain GRPOTrainer, and plain `generate` to evaluate."""

import csv
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BATCH = 512  # completions at once, as in our evaluation


def trainer(config: dict[str, Any], policy: Path, seed: int, folder: Path) -> Any:
    """A GRPOTrainer with the task, prompts, rewards and `args` of a resolved `grpo` stage.

    `policy`: a model's folder. What TRL's arguments do not reach, such as `advantage`, is left out.
    It trains on the GPU in TRL's precision if there is one, else in float32 on the processor, like a stage.
    """
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    from encore import worlds
    from encore.rewards import rules

    world = worlds.make(config["task"])
    problems = worlds.sample(world, config["problems"], seed, "train")
    machine = {} if torch.cuda.is_available() else {"use_cpu": True, "bf16": False}
    args = GRPOConfig(
        **{
            **config["args"],
            "output_dir": str(folder),
            "seed": seed,
            **machine,
            "gradient_checkpointing": False,
            "report_to": "none",
            "disable_tqdm": True,
            "save_strategy": "no",
            "reward_weights": list(config["rewards"].values()),
        }
    )
    return GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32),
        args=args,
        reward_funcs=rules.build(config["rewards"], world, seed),
        train_dataset=Dataset.from_dict(
            {
                "prompt": [worlds.prompt(config["template"], p.question) for p in problems],
                "question": [p.question for p in problems],
                "answer": [p.answer for p in problems],
                "difficulty": [p.difficulty for p in problems],
                "number": [p.number for p in problems],  # by which a gym finds a problem again
            }
        ),
        processing_class=AutoTokenizer.from_pretrained(policy),
    )


def accuracy(model: Any, tokenizer: Any, task: dict[str, Any], seed: int) -> float:
    """The share of right completions of a recipe's eval task: `samples` of each of `items` problems."""
    import torch

    from encore import worlds
    from encore.data.forms import plain
    from evals.tasks.problems import dataset

    world = worlds.make(task["task"])
    rows = dataset(task["task"], task["items"], plain(task["template"]), seed)["test"].to_list()
    rows = [row for row in rows for _ in range(task["samples"])]
    torch.manual_seed(seed)
    model.eval()
    right = 0
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        inputs = tokenizer(
            [r["prompt"] for r in batch], return_tensors="pt", padding=True, padding_side="left"
        )
        with torch.no_grad():
            ids = model.generate(
                **inputs,
                do_sample=True,
                temperature=task["temperature"],
                top_p=task["top_p"],
                top_k=0,
                max_new_tokens=task["max_gen_toks"],
                pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id,
            )
        texts = tokenizer.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        for row, text in zip(batch, texts, strict=True):
            right += world.verify(worlds.Problem(row["question"], row["answer"], row["difficulty"]), text)
    return right / len(rows)


def write(rows: list[dict[str, Any]], columns: Sequence[str], out: Path) -> None:
    """Write a table as CSV, with four digits after the point."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})


def timed(
    command: list[str], log: Path, folder: Path | None = None, threads: int | None = 1
) -> tuple[float, float]:
    """Wall-clock seconds and peak resident memory (MiB) of a process. Raises RuntimeError if it fails.

    It works in `folder` (default: here); `threads` None leaves their number to torch.
    """
    path = [str(folder or ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(path)}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment.pop("OMP_NUM_THREADS", None)
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    started = time.perf_counter()
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {log.read_text()[-2000:]}")
    return time.perf_counter() - started, usage.ru_maxrss / 1024
