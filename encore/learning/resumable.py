"""Exact resume: a run that is killed at any moment ends with the same bits as an unbroken run.

transformers' Trainer saves weights, optimizer, scheduler and random states. Exactness also needs (a)
checkpoints that are either complete and undamaged or do not exist, (b) the loss summed since the last log
line, (c) a data order that depends on the epoch only, and (d) the state of each part of a trainer. Each part
has the methods `state` and `restore`. A checkpoint has the states of all parts, in a file for each process.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from transformers import Trainer, TrainerCallback

from encore.errors import UserError
from encore.learning import digests
from encore.models.sharded import whole
from encore.runtime import gpus
from encore.runtime.files import saving

STATE = "resume.pt"  # the file of the first process; a checkpoint that has it is complete
PARTIAL = "saving"  # a checkpoint is written here and then renamed, so that a kill leaves no half checkpoint
SHARDS = "pytorch_model_fsdp_0"  # accelerate's folder of sharded weights in a checkpoint
EPOCH_STRIDE = 1_000_003  # difference between the seeds of the data orders of two epochs


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints of `folder`, oldest first."""
    numbered = [p for p in folder.glob("checkpoint-*") if p.name[len("checkpoint-") :].isdigit()]
    return sorted((p for p in numbered if (p / STATE).is_file()), key=_step)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name[len("checkpoint-") :])


def discard_damaged(folder: Path, say: Callable[[str], None]) -> None:
    """Remove damaged checkpoints, from the newest back to the first undamaged one; `say` reports each."""
    while newest := last_checkpoint(folder):
        file = digests.damaged(newest, STATE)
        if file is None:
            return
        discard(newest)
        before = last_checkpoint(folder)
        consequence = f"going on from {before.name}" if before else "training starts anew"
        say(f"warning: {newest}: {file} is damaged; {consequence}")


def discard(checkpoint: Path) -> None:
    """Remove a checkpoint, its file STATE first, so that after a kill its remains do not look complete."""
    (checkpoint / STATE).unlink(missing_ok=True)
    shutil.rmtree(checkpoint, ignore_errors=True)


def last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint of `folder`, if any."""
    return next(reversed(checkpoints(folder)), None)


def check_processes(checkpoint: Path) -> None:
    """Raise UserError unless `checkpoint` was saved by as many processes as now, and was sharded as now.

    Each process has its own part of a rollout, its own random state, and its own piece of sharded weights.
    """
    saved_by, now = len([*checkpoint.glob("resume*.pt")]), gpus.processes()
    if saved_by != now:
        raise UserError(
            f"{checkpoint}: {saved_by} processes saved it, and {now} cannot go on from it; run the stage on "
            f"{saved_by} GPUs, or remove the checkpoint to start anew"
        )
    sharded = (checkpoint / SHARDS).is_dir()
    if sharded != gpus.sharded():
        state = "was sharded by fsdp" if sharded else "was not sharded"
        raise UserError(f"{checkpoint}: its stage {state}; set resources.shard as then, or remove it")


def _state_file(checkpoint: Path) -> Path:
    """Return this process's state file: STATE, or resume_<rank>.pt if it is not the first process."""
    return checkpoint / (STATE if gpus.first() else f"resume_{gpus.rank()}.pt")


def _sync(path: Path) -> None:
    """Force a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# the part of a checkpoint that belongs to a `Part`: tensors, numbers, strings and containers of them
State = dict[str, Any]


class Part(Protocol):
    """A part of a trainer whose state is in each checkpoint."""

    def state(self) -> Any:
        """Return the part's state for a checkpoint: a `State`, or a value that a `State` may contain.

        torch loads it with `weights_only=True`.
        """

    def restore(self, state: Any) -> None:
        """Restore what `state` returned."""


@dataclass
class Clock:
    """The training seconds of a run, over all processes that worked on it one after another."""

    began: float = 0.0
    began_cpu: float = 0.0
    earlier_s: float = 0.0  # wall-clock seconds before this process
    earlier_cpu_s: float = 0.0  # CPU seconds before this process, over all cores
    resumed: int = 0  # times the run was continued from a checkpoint

    def start(self) -> None:
        """Begin to count the seconds of this process."""
        self.began, self.began_cpu = time.perf_counter(), time.process_time()

    def spent_s(self) -> float:
        """Return the training seconds so far."""
        return self.earlier_s + (time.perf_counter() - self.began)

    def state(self) -> tuple[float, int, float]:
        return self.spent_s(), self.resumed, self.earlier_cpu_s + (time.process_time() - self.began_cpu)

    def restore(self, state: Sequence[float]) -> None:
        self.earlier_s, resumed, *cpu = state  # checkpoints of earlier versions have no CPU seconds
        self.earlier_cpu_s, self.resumed = sum(cpu), int(resumed) + 1


@dataclass
class Loss:
    """The loss that transformers' loop has summed up since the last log line."""

    trainer: Any

    def state(self) -> tuple[torch.Tensor, int]:
        return self.trainer._tr_loss, self.trainer._globalstep_last_logged

    def restore(self, state: tuple[torch.Tensor, int]) -> None:
        self.trainer._tr_loss = state[0].to(self.trainer.args.device)
        self.trainer._globalstep_last_logged = state[1]


class Resumable(Trainer):
    """A mixin for a `Trainer`: atomic checkpoints, exact resume, and a stop at a non-finite number."""

    args: Any  # an instance of the subclass's configuration class
    rounded_sampler = False  # whether what samples for it is rounded on purpose

    @cached_property
    def clock(self) -> Clock:
        """The training seconds of the run."""
        return Clock()

    def held(self) -> dict[str, Part]:
        """Return the parts that a checkpoint keeps, in the order in which they are restored."""
        return {"clock": self.clock, "loss": Loss(self)}

    def begin_anew(self) -> None:
        """Remove what a killed run has left outside of checkpoints; called if there is no checkpoint."""

    def restore(self, checkpoint: Path) -> None:
        """Restore the parts as they were when `checkpoint` was saved.

        Raises UserError if `checkpoint` was saved by a version of Encore with other parts or states.
        """
        states = torch.load(_state_file(checkpoint), map_location="cpu", weights_only=True)
        parts = self.held()
        message = f"{checkpoint}: another version of Encore saved it; remove it to start this stage again"
        if states.keys() != parts.keys():
            raise UserError(message)
        try:
            for name, part in parts.items():
                part.restore(states[name])
        except KeyError:
            raise UserError(message) from None

    def _save_checkpoint(self, model, trial):
        folder = Path(self.args.output_dir)
        good = last_checkpoint(folder)
        try:
            with saving(
                f"the checkpoint of step {self.state.global_step}",
                folder,
                f"last good checkpoint: {good or 'none'}; ",
            ):
                _write_checkpoint(self, model, trial, folder)
        except UserError:
            shutil.rmtree(folder / PARTIAL, ignore_errors=True)
            raise
        if self.args.should_save:
            for old in checkpoints(folder)[: -max(self.args.save_total_limit or 1, 1)]:
                discard(old)

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        stop_unless_finite("loss", loss, self)
        return loss

    def _get_grad_norm(self, model, grad_norm=None):
        # called after the backward pass and before the optimizer's step
        norm = whole(super()._get_grad_norm(model, grad_norm=grad_norm))  # gathers sharded gradients
        stop_unless_finite("grad_norm", norm, self)
        return norm


class Resume(TrainerCallback):
    """A callback that restores a trainer's parts once transformers has set up all but the random states."""

    def __init__(self, trainer: Resumable, checkpoint: Path):
        self.trainer, self.checkpoint = trainer, checkpoint

    def on_train_begin(self, args, state, control, **kwargs):
        self.trainer.restore(self.checkpoint)


class OrderOfEpoch(TrainerCallback):
    """A callback that reports the new epoch to the sampler of the data.

    accelerate does not report it if several processes resume within an epoch and skip its first batches.
    """

    def on_epoch_begin(self, args, state, control, train_dataloader=None, **kwargs):
        sampler: Any = train_dataloader.batch_sampler
        while hasattr(sampler, "batch_sampler"):
            sampler = sampler.batch_sampler
        if hasattr(getattr(sampler, "sampler", None), "set_epoch"):
            sampler.sampler.set_epoch(int(state.epoch or 0))


def _write_checkpoint(trainer: Resumable, model: Any, trial: Any, folder: Path) -> None:
    """Write a checkpoint with the states of the parts under `folder`/PARTIAL, then move it into `folder`."""
    args, name = trainer.args, f"checkpoint-{trainer.state.global_step}"
    partial = folder / PARTIAL / name
    if args.should_save:
        shutil.rmtree(folder / PARTIAL, ignore_errors=True)
    trainer.accelerator.wait_for_everyone()
    output, args.output_dir = args.output_dir, str(partial.parent)
    try:
        Trainer._save_checkpoint(trainer, model, trial)  # TRL would also write a model card, which costs time
    finally:
        args.output_dir = output
    states = {name: part.state() for name, part in trainer.held().items()}
    if not args.should_save:
        torch.save(states, _state_file(partial))
    trainer.accelerator.wait_for_everyone()
    if args.should_save:
        torch.save(states, partial / STATE)
        digests.write(partial, STATE)
        for path in [*partial.rglob("*"), partial]:
            _sync(path)
        partial.replace(folder / name)
        _sync(folder)


def stop_unless_finite(metric: str, value: torch.Tensor | float, trainer: Any) -> None:
    """Raise UserError unless `value` of the metric is finite; the message names the last good checkpoint."""
    if torch.isfinite(torch.as_tensor(value)).all():
        return
    good = last_checkpoint(Path(trainer.args.output_dir))
    raise UserError(
        f"step {trainer.state.global_step + 1}: {metric} is {float(value)}, training cannot go on; "
        f"last good checkpoint: {good or 'none'}; a lower learning_rate or max_grad_norm often helps"
    )
