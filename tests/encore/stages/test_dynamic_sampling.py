"""Stages with dynamic sampling: what they record, how they end, resume after a kill, and two processes."""

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import torch
from transformers import AutoTokenizer

from encore.learning.mixed_groups import MixedGroups
from encore.learning.trainer import RolloutTrainer

pytestmark = pytest.mark.slow

SIZE = 4  # completions a group
CONFIG: dict[str, Any] = {
    **stage_runs.GRPO,
    "problems": 24,
    "dynamic_sampling": {"max_rounds": 6},
    "args": {**stage_runs.GRPO["args"], "max_steps": 10, "loss_type": "dapo"},
}


def pools(right: Any) -> None:
    """Replace the accuracy reward in training by `right(question, completion)`."""
    from encore.rewards import rules

    plain = rules.build

    def build(names, *args, **options):
        names = list(names)
        functions = plain(names, *args, **options)
        gold = functions[names.index("accuracy")]

        def accuracy(completions, question, trainer_state=None, **columns):
            if trainer_state is None:  # a check before training
                return gold(completions=completions, question=question, **columns)
            return [float(right(q, c)) for q, c in zip(question, completions, strict=True)]

        functions[names.index("accuracy")] = accuracy
        return functions

    rules.build = build


def some_mixed() -> None:
    """Of three problems one is always solved, one never, and one by completions of an even length."""
    pools(lambda q, c: (len(c) % 2 == 0) if sum(map(ord, q)) % 3 == 2 else sum(map(ord, q)) % 3)


def mostly_mixed() -> None:
    pools(lambda q, c: len(c) % 2 == 0 or sum(map(ord, q)) % 3 == 0)


def all_solved() -> None:
    pools(lambda q, c: True)


def run(base: Path, folder: Path, trap: Any, config: dict[str, Any] = CONFIG) -> int:
    if not folder.exists():
        shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.txt"))
    command = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    return stage_runs.run("grpo", command, folder, trap)


def read(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Recorded completions, and metrics.json."""
    lines = (folder / "results/grpo/completions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads(
        (folder / "results/grpo/metrics.json").read_text()
    )


@pytest.fixture(scope="module")
def filtered(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filtered") / "run"
    assert run(base, folder, some_mixed) == 0, (folder / "err.txt").read_text()
    return folder


def test_a_stage_records_every_round_and_keeps_full_rollouts(filtered: Path):
    rows, record = read(filtered)
    steps = {row["step"] for row in rows}
    assert steps == {1, 5, 9}
    for step in steps:
        of_step = [row for row in rows if row["step"] == step]
        groups = [of_step[i : i + SIZE] for i in range(0, len(of_step), SIZE)]
        assert len(groups) % 4 == 0
        assert sum(row["kept"] for row in of_step) == 16  # the rollout
        for group in groups:
            assert len({row["prompt"] for row in group}) == len({row["kept"] for row in group}) == 1
            if group[0]["kept"]:
                assert 0 < sum(row["rewards"]["accuracy"] for row in group) < SIZE
    metrics = record["metrics"]
    assert metrics["last/dynamic/rounds"] > 1
    assert metrics["last/dynamic/underfull"] == 0
    assert 0 < metrics["first_fifth/groups/wrong_in_mixed"] < 1
    last = [row["rewards"]["accuracy"] for row in rows if row["step"] == 9]
    assert metrics["last/rewards/accuracy/mean"] == pytest.approx(sum(last) / len(last))
    checks = {one["check"]: one["ok"] for one in record["health"]}
    assert checks["underfull"]
    assert "zero_variance" not in checks


def test_operations_of_training_are_those_on_kept_completions(filtered: Path):
    rows, record = read(filtered)
    tokenizer = AutoTokenizer.from_pretrained(filtered / "checkpoints/grpo/final")
    provenance = json.loads((filtered / "results/grpo/provenance.json").read_text())
    parameters = record["metrics"]["parameters"]
    trained = record["metrics"]["last/dynamic/trained_tokens"]
    tokens = [len(tokenizer(row["prompt"]).input_ids) + row["tokens"] for row in rows]
    assert sum(tokens) == provenance["tokens"]
    assert sum(n for n, row in zip(tokens, rows, strict=True) if row["kept"]) == trained
    assert provenance["training_flops"] == 6 * parameters * trained
    old = reference = 2  # a rollout has four updates, and beta is not 0
    sampling = (2 + old + reference) * parameters * provenance["tokens"]
    assert provenance["flops"] == sampling + provenance["training_flops"]


def test_one_problem_after_another_until_none_is_mixed_ends_the_stage(base: Path, tmp_path: Path):
    folder = tmp_path / "run"
    assert run(base, folder, all_solved) == 2
    assert "error: step 1: dynamic sampling found no group" in (folder / "out.txt").read_text()
    assert not (folder / "results/grpo/metrics.json").exists()


def test_one_round_is_a_run_without_dynamic_sampling(base: Path, tmp_path: Path):
    """With accuracy as the only reward, a group of one outcome has no advantage: the weights are the same."""
    plain = {key: value for key, value in CONFIG.items() if key != "dynamic_sampling"}
    weights = []
    for name, config in (("one", CONFIG | {"dynamic_sampling": {"max_rounds": 1}}), ("none", plain)):
        config = config | {"rewards": {"accuracy": 1.0}}
        # one minibatch: the order of rows within it is all that differs
        config["args"] = config["args"] | {"per_device_train_batch_size": 16, "steps_per_generation": 1}
        assert run(base, tmp_path / name, mostly_mixed, config) == 0
        weights.append(load(tmp_path / name))
        rows, _ = read(tmp_path / name)
        assert len(rows) == 10 * 16
    for name, tensor in weights[0].items():
        torch.testing.assert_close(tensor, weights[1][name], rtol=1e-3, atol=1e-5)


def load(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "checkpoints/grpo/final/model.safetensors")


class Kill:
    """Trap: die at the start of the n-th micro-step or of the n-th round of sampling."""

    def __init__(self, what: str, number: int):
        self.what, self.number = what, number

    def __call__(self) -> None:
        some_mixed()
        from encore.learning.resumable import Resumable

        owner, name = {
            "step": (Resumable, "training_step"),
            "round": (RolloutTrainer, "_generate_single_turn"),
        }[self.what]
        plain, seen = getattr(owner, name), []

        def trapped(trainer, *args, **kwargs):
            seen.append(1)
            if len(seen) == self.number:
                stage_runs.die()
            return plain(trainer, *args, **kwargs)

        setattr(owner, name, trapped)


@pytest.mark.parametrize(
    "kill", [("step", n) for n in range(1, 11)] + [("round", n) for n in range(1, 7)], ids=str
)
def test_killed_anywhere_and_rerun(kill, base: Path, filtered: Path, tmp_path: Path):
    assert run(base, tmp_path / "run", Kill(*kill)) == -9
    assert run(base, tmp_path / "run", some_mixed) == 0
    assert stage_runs.outputs(tmp_path / "run", "grpo") == stage_runs.outputs(filtered, "grpo")


def one_of_two(rank: int, port: int, base: Path, folder: Path) -> None:
    """A process of a distributed run of the stage; its last rollout goes to rollout.pt."""
    for name, value in (("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", 2), ("MASTER_PORT", port)):
        os.environ[name] = str(value)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "ACCELERATE_USE_CPU": "true"}
    (folder / "out").mkdir(parents=True)
    os.chdir(base)
    some_mixed()
    from encore.runtime.progress import Progress
    from encore.stages import grpo
    from encore.stages.job import Job, typed

    plain = MixedGroups.collect

    def noted(self, rows):
        rollout = plain(self, rows)
        torch.save({**vars(rollout), "rounds": self.measures.log["dynamic/rounds"]}, folder / "rollout.pt")
        return rollout

    MixedGroups.collect = noted
    config = CONFIG | {"args": CONFIG["args"] | {"max_steps": 4, "save_strategy": "no", "beta": 0.0}}
    config["args"] = {k: v for k, v in config["args"].items() if "ref_model" not in k}
    inputs = {"policy": Path("results/pretrain/metrics.json")}
    with (folder / "out.txt").open("w") as out:
        job = Job(inputs, 3, folder, folder / "out/metrics.json", Progress("r/cpu/a/seed3/grpo", out))
        grpo.run(typed("grpo", config)[0], job)


def test_two_processes_fill_a_part_each(base: Path, tmp_path: Path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folders = [tmp_path / str(rank) for rank in range(2)]
    processes = [
        stage_runs.FORK.Process(target=one_of_two, args=(rank, port, base, folder))
        for rank, folder in enumerate(folders)
    ]
    for process in processes:
        process.start()
    assert [stage_runs.finish(process) for process in processes] == [0, 0]
    parts = [torch.load(folder / "rollout.pt") for folder in folders]
    assert parts[0]["rounds"] == parts[1]["rounds"]
    assert all(len(part["completion_ids"]) == 16 for part in parts)
    rows = [json.loads(line) for line in (folders[0] / "completions.jsonl").read_text().splitlines()]
    assert len(rows) == 32 * parts[0]["rounds"][-1]
    assert len({row["prompt"] for row in rows[:32]}) == 8  # the two processes take different prompts
    kept = [row["tokens"] for row in rows if row["kept"]]
    assert len(kept) == 32
    assert sum(kept) == sum(part["completion_mask"].sum() for part in parts)
