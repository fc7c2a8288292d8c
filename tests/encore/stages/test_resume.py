"""A stage that is killed with SIGKILL and run again gives the same bits as one that was never killed."""

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import stage_runs
from stage_runs import arguments_of, fresh


def at_save(number: int) -> None:
    """Die during the n-th save, with the weights written and the rest missing."""
    from encore.learning import resumable

    plain, seen = resumable.torch.save, []

    def save(data, path, *args, **kwargs):
        if Path(path).name == resumable.STATE:
            seen.append(1)
            if len(seen) == number:
                Path(path).write_bytes(b"half")
                stage_runs.die()
        return plain(data, path, *args, **kwargs)

    resumable.torch.save = save


def before_the_sentinel() -> None:
    """Die with the model saved and metrics.json not yet written."""
    from encore.runtime import files

    files.write_json = lambda *args: stage_runs.die()


def mid_rollout():
    stage_runs.at_training_step(11)  # checkpoint of step 9 is in the middle of the third rollout


def later_epoch():
    stage_runs.at_training_step(22)


def first_steps():
    stage_runs.at_training_step(2)  # before any checkpoint


def second_save():
    at_save(2)


def last_save():
    at_save(9)


def during_clean():
    """Die with metrics.json written and the training state half removed, in the worst order."""
    from encore.learning import resumable
    from encore.runtime import files

    plain = files.write_json

    def remove(folder: Path, **options) -> None:
        for path in folder.iterdir():
            if path.name != resumable.STATE:
                path.unlink()
        stage_runs.die()

    def trapped(path: Path, data: dict[str, Any]) -> None:
        plain(path, data)
        if path.name == "metrics.json":  # the last file: nothing but the training state is removed after it
            shutil.rmtree = remove

    files.write_json = trapped


KILLS = [
    *(("grpo", trap) for trap in (first_steps, later_epoch, second_save, last_save)),
    *(("grpo", trap) for trap in (before_the_sentinel, during_clean)),
    *(("pretrain", trap) for trap in (mid_rollout, later_epoch, second_save)),
    *(("pretrain", trap) for trap in (before_the_sentinel, during_clean)),
]


@pytest.mark.fault(
    "kill -9", "while saving, before and after metrics.json, while removing the training state", "same bits"
)
@pytest.mark.parametrize(
    ("kind", "trap"),
    [("grpo", mid_rollout), *(pytest.param(*kill, marks=pytest.mark.slow) for kill in KILLS)],
)
def test_killed_and_rerun(kind: str, trap: Any, base: Path, trained: Path, tmp_path: Path):
    folder = fresh(kind, base, tmp_path / "killed")
    assert stage_runs.run(kind, arguments_of(kind), folder, trap) == -9
    # as Snakemake does with the output of a job that failed
    (folder / f"results/{kind}/metrics.json").unlink(missing_ok=True)
    assert stage_runs.run(kind, arguments_of(kind), folder) == 0, (folder / "err.txt").read_text()
    unbroken = trained if kind == "grpo" else base
    assert stage_runs.outputs(folder, kind) == stage_runs.outputs(unbroken, kind)
    assert not list((folder / f"checkpoints/{kind}").glob("checkpoint-*"))


def slow_processor() -> None:
    """Count each CPU second as a day, and die in the middle of the third rollout."""
    plain = time.process_time
    time.process_time = lambda: 86_400 * plain()
    mid_rollout()


def test_cpu_seconds_add_up_over_kills(base: Path, tmp_path: Path):
    folder = fresh("grpo", base, tmp_path / "killed")
    assert stage_runs.run("grpo", arguments_of("grpo"), folder, slow_processor) == -9
    assert stage_runs.run("grpo", arguments_of("grpo"), folder) == 0, (folder / "err.txt").read_text()
    cost = json.loads((folder / "results/grpo/provenance.json").read_text())
    assert cost["resumed"] == 1
    assert cost["cpu_s"] > 3600


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    """`data` with the lowest bit of its middle byte flipped: a weight changes a little, no length changes."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.fault(
    "a file of a training checkpoint is cut short, or a byte of it flipped",
    "the newest one, when a killed stage goes on",
    "a warning that names the file; goes on from the one before, or starts anew; same bits",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "damage", "before"),
    [
        ("model.safetensors", cut, False),
        ("model.safetensors", flipped, False),
        ("model.safetensors", flipped, True),
        ("optimizer.pt", flipped, True),
        ("resume.pt", flipped, False),
        ("checkpoint.sha256", cut, False),
    ],
)
def test_a_damaged_checkpoint_is_left_out(
    name: str, damage: Any, before: bool, base: Path, tmp_path: Path, trained: Path
):
    folder = fresh("grpo", base, tmp_path / "damaged")
    config = stage_runs.GRPO | {"args": stage_runs.GRPO["args"] | {"save_total_limit": 1 + before}}
    arguments = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    assert stage_runs.run("grpo", arguments, folder, mid_rollout) == -9
    *older, newest = sorted(
        (folder / "checkpoints/grpo").glob("checkpoint-*"), key=lambda path: path.stat().st_mtime
    )
    (newest / name).write_bytes(damage((newest / name).read_bytes()))
    assert stage_runs.run("grpo", arguments, folder) == 0, (folder / "err.txt").read_text()
    then = f"going on from {older[0].name}" if before else "training starts anew"
    says = f"warning: {newest.relative_to(folder)}: {name} is damaged; {then}"
    assert says in (folder / "out.txt").read_text()
    made, undisturbed = stage_runs.outputs(folder, "grpo"), stage_runs.outputs(trained, "grpo")
    del made["metrics.json"], undisturbed["metrics.json"]  # it has the configuration, which differs
    assert made == undisturbed


def full_soon() -> None:
    from encore.learning import callbacks

    plain = callbacks.shutil.disk_usage
    callbacks.shutil.disk_usage = lambda folder: plain(folder)._replace(free=1000)


@pytest.mark.fault("the disk is nearly full", "in training", "a warning, once, before it fails")
@pytest.mark.slow
def test_room_for_the_next_checkpoint_is_watched(base: Path, tmp_path: Path):
    folder = fresh("grpo", base, tmp_path / "full")
    assert stage_runs.run("grpo", arguments_of("grpo"), folder, full_soon) == 0
    lines = [line for line in (folder / "out.txt").read_text().splitlines() if "MiB free" in line]
    assert len(lines) == 1
    assert "warning: checkpoints/grpo: 0 MiB free, and the next checkpoint needs" in lines[0]


def told_to_end() -> None:
    """SIGTERM in the middle of the 11th micro-step, as from Slurm."""
    from encore.learning.resumable import Resumable

    plain, seen = Resumable.training_step, []

    def step(self, *args, **kwargs):
        seen.append(1)
        if len(seen) == 11:
            os.kill(os.getpid(), signal.SIGTERM)
        return plain(self, *args, **kwargs)

    Resumable.training_step = step


@pytest.mark.fault(
    "SIGTERM, as of a scheduler that takes the machine",
    "in training",
    "saves after the step, ends in one line; same bits",
)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step"), [("grpo", 11), ("pretrain", 3)])
def test_told_to_end_it_saves_and_goes_on_with_the_same_bits(
    kind: str, step: int, base: Path, trained: Path, tmp_path: Path
):
    """At a step after which nothing else would have been saved."""
    folder = fresh(kind, base, tmp_path / "told")
    (folder / "out.txt").unlink(missing_ok=True)
    assert stage_runs.run(kind, arguments_of(kind), folder, told_to_end) == 128 + signal.SIGTERM
    says = f"stopped; all up to step {step} is saved in checkpoints/{kind}; the same command goes on"
    assert says in (folder / "out.txt").read_text().splitlines()[-1]
    assert says in (folder / "err.txt").read_text().splitlines()[-1]
    assert stage_runs.run(kind, arguments_of(kind), folder) == 0, (folder / "err.txt").read_text()
    assert f"resuming from step {step} " in (folder / "out.txt").read_text()
    unbroken = trained if kind == "grpo" else base
    assert stage_runs.outputs(folder, kind) == stage_runs.outputs(unbroken, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pretrain", "grpo"])
def test_twenty_random_kills(kind: str, base: Path, trained: Path, tmp_path: Path):
    arguments = arguments_of(kind)
    expected = stage_runs.outputs(trained if kind == "grpo" else base, kind)
    rng = random.Random(0)
    started = time.monotonic()
    assert stage_runs.run(kind, arguments, fresh(kind, base, tmp_path / "timed")) == 0
    seconds = time.monotonic() - started
    for i in range(20):
        folder = killed(kind, arguments, base, tmp_path / str(i), rng.uniform(0.05, 0.95) * seconds)
        assert stage_runs.run(kind, arguments, folder) == 0, (folder / "err.txt").read_text()
        assert stage_runs.outputs(folder, kind) == expected, f"kill {i}"


def killed(kind: str, arguments: list[str], base: Path, folder: Path, delay: float) -> Path:
    """The folder of a stage killed after `delay` seconds, or sooner where it was done by then."""
    process = stage_runs.start(kind, arguments, fresh(kind, base, folder))
    time.sleep(delay)
    process.kill()
    if stage_runs.finish(process) == -9:
        return folder
    shutil.rmtree(folder)
    return killed(kind, arguments, base, folder, 0.7 * delay)
