"""A failure is one line on the screen, and what was saved before it stays good."""

import json
import os
import re
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest
import stage_runs
from stage_runs import GRPO, PRETRAIN

pytestmark = pytest.mark.slow  # runs stages

POLICY = {"policy": "results/pretrain/metrics.json"}


def overlay(config: dict, **changes) -> dict:
    return {**config, **changes, "args": {**config["args"], **changes.get("args", {})}}


@pytest.fixture
def folder(base: Path, tmp_path: Path) -> Path:
    """A working folder with a base model, without the log of its training."""
    copy = tmp_path / "run"
    shutil.copytree(base, copy, ignore=shutil.ignore_patterns("*.txt"))
    return copy


def nan_loss():
    from encore.learning.trainer import RolloutTrainer as Trainer

    plain = Trainer.compute_loss
    Trainer.compute_loss = lambda self, *a, **k: (
        plain(self, *a, **k) * (float("nan") if self.state.global_step == 4 else 1.0)
    )


def infinite_gradient():
    from encore.learning.language_model import LanguageModel

    plain = LanguageModel._clip_grad_norm
    LanguageModel._clip_grad_norm = lambda self, model: (
        plain(self, model) * (float("inf") if self.state.global_step == 5 else 1.0)
    )


def infinite_reward():
    from encore.rewards import rules

    plain = rules.formatted
    rules.formatted = lambda text: float("inf") if "=" in text else plain(text)


def unscored():
    from encore.rewards import rules

    def build(names, world, seed, **options):
        def accuracy(completions, answer, trainer_state=None, **columns):
            if trainer_state and trainer_state.global_step:
                return [None] * len(completions)
            return [
                float(c.endswith(f"<answer>{a}</answer>")) for c, a in zip(completions, answer, strict=True)
            ]

        return [accuracy]

    rules.build = build


@pytest.mark.fault(
    "NaN or infinity",
    "loss, gradient, reward",
    "stops at once; one line names the step, the number and the last good checkpoint",
)
@pytest.mark.parametrize(
    ("kind", "trap", "config", "says"),
    [
        ("grpo", nan_loss, GRPO, "step 5: loss is nan"),
        ("pretrain", infinite_gradient, PRETRAIN, "step 6: grad_norm is inf"),
        ("grpo", infinite_reward, GRPO, "step 1: reward format is inf"),
        ("grpo", unscored, overlay(GRPO, rewards={"accuracy": 1.0}), "step 5: reward is nan"),
    ],
)
def test_a_number_that_is_not_finite_stops_the_job(kind, trap, config, says, folder: Path):
    (folder / f"results/{kind}/metrics.json").unlink(missing_ok=True)
    arguments = stage_runs.command(kind, config, **(POLICY if kind == "grpo" else {}))
    assert stage_runs.run(kind, arguments, folder, trap) == 2
    line = stage_runs.error_line(folder)
    assert says in line
    good = sorted((folder / f"checkpoints/{kind}").glob("checkpoint-*"))
    assert f"last good checkpoint: {good[-1].relative_to(folder) if good else 'none'}" in line


def disk_full_at_step_6():
    """From the second checkpoint on, no file can have more than a few bytes."""
    from encore.learning.resumable import Resumable

    plain = Resumable._save_checkpoint

    def save(self, model, trial):
        if self.state.global_step > 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
        plain(self, model, trial)

    def make_room(folder):
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return disk_usage(folder)

    from encore.runtime import files

    disk_usage = files.shutil.disk_usage
    files.shutil.disk_usage = make_room  # called once the save has failed: the log must still be written
    Resumable._save_checkpoint = save


@pytest.mark.fault(
    "the disk is full",
    "saving a checkpoint",
    "one line; the checkpoint before it stays, and the stage goes on from it to the same bits",
)
@pytest.mark.parametrize("kind", ["grpo", "pretrain"])
def test_full_disk_while_saving(kind, folder: Path, trained: Path):
    shutil.rmtree(folder / f"results/{kind}", ignore_errors=True)
    shutil.rmtree(folder / f"checkpoints/{kind}", ignore_errors=True)
    config = {"grpo": GRPO, "pretrain": overlay(PRETRAIN, args={"save_steps": 3})}[kind]
    arguments = stage_runs.command(kind, config, **(POLICY if kind == "grpo" else {}))
    assert stage_runs.run(kind, arguments, folder, disk_full_at_step_6) == 2
    line = stage_runs.error_line(folder)
    assert "cannot save the checkpoint of step 6" in line
    assert f"last good checkpoint: checkpoints/{kind}/checkpoint-3" in line
    assert [p.name for p in (folder / f"checkpoints/{kind}").glob("*") if p.is_dir()] == ["checkpoint-3"]
    assert stage_runs.run(kind, arguments, folder) == 0
    assert "resuming from step 3" in (folder / "out.txt").read_text()
    if kind == "grpo":
        assert stage_runs.outputs(folder, kind) == stage_runs.outputs(trained, kind)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (overlay(GRPO, problems=3), "enough_prompts: one rollout takes 4 prompts, there are 3"),
        (overlay(GRPO, template="<user>{question}?<assistant>"), "does not know a part of the prompt"),
        (overlay(GRPO, args={"max_completion_length": 60}), "context: the longest prompt"),
        (
            overlay(GRPO, args={"learning_rat": 1e-3}),
            'args.learning_rat: unknown key; did you mean "learning_rate"',
        ),
        (overlay(GRPO, args={"num_generations": 5}), "args: "),
        (overlay(GRPO, args={"output_dir": "x"}), "args.output_dir: set by the stage itself"),
        (overlay(GRPO, args={"fsdp": True}), "args.fsdp: set by the stage itself; write resources:"),
        (overlay(GRPO, rewards={"acuracy": 1.0}), 'did you mean "accuracy"'),
        (overlay(GRPO, problems=10**6), "distinct train questions"),
        (overlay(GRPO, rewards={"accuracy": 1.0, "coin": 1.0}), "coin"),
    ],
)
def test_a_mistake_is_one_line_before_training(config, says, folder: Path):
    assert stage_runs.run("grpo", stage_runs.command("grpo", config, **POLICY), folder) == 2
    assert says in stage_runs.error_line(folder)
    assert not list((folder / "checkpoints/grpo").glob("checkpoint-*"))


@pytest.mark.fault("weights were changed", "the input of a stage", "refused in one line")
def test_changed_weights_are_refused(folder: Path):
    weights = folder / "checkpoints/pretrain/final/model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert stage_runs.run("grpo", stage_runs.command("grpo", GRPO, **POLICY), folder) == 2
    assert "have changed since it was written" in stage_runs.error_line(folder)


def test_an_upstream_that_was_not_run(tmp_path: Path):
    assert stage_runs.run("grpo", stage_runs.command("grpo", GRPO, **POLICY), tmp_path) == 2
    assert "results/pretrain/metrics.json does not exist; run its stage first" in stage_runs.error_line(
        tmp_path
    )


def until_another_waits():
    from encore.learning.resumable import Resumable

    plain, deadline = Resumable.training_step, time.monotonic() + 60

    def step(self, *args, **kwargs):
        while "waiting for process" not in Path("out.txt").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        return plain(self, *args, **kwargs)

    Resumable.training_step = step


@pytest.mark.fault("two processes are started", "one stage", "the second waits, and finds nothing to do")
def test_two_processes_in_one_folder(folder: Path, trained: Path):
    arguments = stage_runs.command("grpo", GRPO, **POLICY)
    first = stage_runs.start("grpo", arguments, folder, until_another_waits)
    deadline = time.monotonic() + 60
    while "step" not in (folder / "out.txt").read_text() if (folder / "out.txt").exists() else True:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    second = stage_runs.start("grpo", arguments, folder)
    assert stage_runs.finish(first) == stage_runs.finish(second) == 0
    out = (folder / "out.txt").read_text()
    assert f"waiting for process {first.pid}, which works in checkpoints/grpo" in out
    assert "nothing to do: results/grpo/metrics.json is there and valid" in out
    assert out.count("starting at step") == 1
    assert stage_runs.outputs(folder, "grpo") == stage_runs.outputs(trained, "grpo")


def test_what_a_finished_stage_says(trained: Path):
    data = json.loads((trained / "results/grpo/metrics.json").read_text())
    assert data["inputs"].keys() == {"policy"}
    assert data["metrics"].keys() >= {"last/reward", "last_fifth/accuracy", "last_fifth/kl"}
    assert {one["check"]: one["ok"] for one in data["health"]}.keys() >= {
        "gold",
        "garbage",
        "context",
        "truncation",
        "zero_variance",
        "entropy",
    }
    provenance = json.loads((trained / "results/grpo/provenance.json").read_text())
    assert provenance["steps"] == 26
    assert provenance["flops"] > 0
    rows = [json.loads(line) for line in (trained / "results/grpo/completions.jsonl").open()]
    assert len(rows) == 7 * 16  # seven rollouts of 16 completions for 26 steps
    assert rows[-1].keys() >= {
        "step",
        "prompt",
        "completion",
        "answer",
        "tokens",
        "eos",
        "reward",
        "advantage",
    }
    assert not list((trained / "checkpoints/grpo").glob("checkpoint-*"))
    # nothing in the folder of the weights may differ between machines
    assert not any(
        os.fspath(trained) in p.read_text() for p in (trained / "checkpoints/grpo/final").glob("*.json")
    )


@pytest.mark.fault("SIGINT", "in training", "one line says what is saved")
def test_ctrl_c_is_one_line_that_says_what_is_saved(base, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(base, folder)
    process = stage_runs.start(
        "grpo", stage_runs.command("grpo", GRPO, policy="results/pretrain/metrics.json"), folder
    )
    while not [*folder.glob("checkpoints/grpo/checkpoint-*")]:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    assert stage_runs.finish(process) == 130
    assert "Traceback" not in (folder / "err.txt").read_text()
    last = (folder / "out.txt").read_text().splitlines()[-1]
    assert re.search(
        r"stopped; all up to step \d+ is saved in checkpoints/grpo; the same command goes on", last
    )
    assert (folder / "err.txt").read_text().splitlines()[-1] in last
