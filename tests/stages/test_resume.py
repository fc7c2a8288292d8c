"""A run killed with SIGKILL and started again gives the bits of one that was never killed."""

import random
import shutil
import time
from pathlib import Path

import pytest
import stage_runs


def at_training_step(number: int) -> None:
    """Die at the start of a micro-step, counted from 1."""
    from recipes.trainers.resume import ExactResume

    plain, seen = ExactResume.training_step, []

    def step(self, *args, **kwargs):
        seen.append(1)
        if len(seen) == number:
            stage_runs.die()
        return plain(self, *args, **kwargs)

    ExactResume.training_step = step


def at_save(number: int) -> None:
    """Die within the n-th save, with the weights written and the rest missing."""
    from recipes.trainers import resume

    plain, seen = resume.torch.save, []

    def save(data, path, *args, **kwargs):
        if Path(path).name == resume.STATE:
            seen.append(1)
            if len(seen) == number:
                Path(path).write_bytes(b"half")
                stage_runs.die()
        return plain(data, path, *args, **kwargs)

    resume.torch.save = save


def before_the_sentinel() -> None:
    """Die with the model saved and metrics.json not yet written."""
    from recipes.stages import sentinel

    sentinel.write_json = lambda *args: stage_runs.die()


def mid_rollout():
    at_training_step(11)  # checkpoint of step 9 is in the middle of the third rollout


def later_epoch():
    at_training_step(22)


def first_steps():
    at_training_step(2)  # before any checkpoint


def second_save():
    at_save(2)


def last_save():
    at_save(9)


TRAPS = [mid_rollout, later_epoch, first_steps, second_save, last_save, before_the_sentinel]


@pytest.mark.parametrize("trap", TRAPS)
def test_grpo_killed_and_rerun(trap, base: Path, trained: Path, tmp_path: Path):
    folder = tmp_path / "run"
    shutil.copytree(base, folder)
    arguments = stage_runs.command("grpo", stage_runs.GRPO, policy="results/pretrain/metrics.json")
    assert stage_runs.run("grpo", arguments, folder, trap) == -9
    assert not (folder / "results/grpo/metrics.json").exists()
    assert stage_runs.run("grpo", arguments, folder) == 0, (folder / "err.txt").read_text()
    assert stage_runs.outputs(folder, "grpo") == stage_runs.outputs(trained, "grpo")


@pytest.mark.parametrize("trap", [mid_rollout, later_epoch, second_save, before_the_sentinel])
def test_pretrain_killed_and_rerun(trap, base: Path, tmp_path: Path):
    arguments = stage_runs.command("pretrain", stage_runs.PRETRAIN)
    assert stage_runs.run("pretrain", arguments, tmp_path, trap) == -9
    assert stage_runs.run("pretrain", arguments, tmp_path) == 0, (tmp_path / "err.txt").read_text()
    assert stage_runs.outputs(tmp_path, "pretrain") == stage_runs.outputs(base, "pretrain")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pretrain", "grpo"])
def test_twenty_random_kills(kind: str, base: Path, trained: Path, tmp_path: Path):
    config = {"pretrain": stage_runs.PRETRAIN, "grpo": stage_runs.GRPO}[kind]
    policy = {"policy": "results/pretrain/metrics.json"} if kind == "grpo" else {}
    arguments = stage_runs.command(kind, config, **policy)
    expected = stage_runs.outputs(trained if kind == "grpo" else base, kind)
    rng = random.Random(0)
    started = time.monotonic()
    assert stage_runs.run(kind, arguments, fresh(kind, base, tmp_path / "timed")) == 0
    whole = time.monotonic() - started
    for i in range(20):
        folder = killed(kind, arguments, base, tmp_path / str(i), rng.uniform(0.05, 0.95) * whole)
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


def fresh(kind: str, base: Path, folder: Path) -> Path:
    if kind == "grpo":
        shutil.copytree(base, folder)
    return folder
