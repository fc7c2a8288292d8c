"""Exact resume: a run killed at any moment and started again ends with the same bits as one never killed.

transformers' Trainer saves weights, optimizer, scheduler and random states. Exactness also needs (a)
checkpoints that exist completely or not at all, and as they were saved, (b) the loss summed since the last
log line, (c) a data order that depends on the epoch only, and (d) what a subclass holds in memory
(`held_state`).
"""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer

from encore.errors import UserError
from encore.learning import digests
from encore.models.sharded import whole
from encore.runtime import gpus
from encore.runtime.files import saving

STATE = "resume.pt"  # of the first process; a checkpoint is complete once it is there
PARTIAL = "saving"  # a checkpoint is written here and then renamed, so that a kill leaves no half of one
SHARDS = "pytorch_model_fsdp_0"  # accelerate's folder of sharded weights in a checkpoint
EPOCH_STRIDE = 1_000_003  # between the seeds of the data orders of two epochs


def checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints of `folder`, oldest first."""
    numbered = [p for p in folder.glob("checkpoint-*") if p.name[len("checkpoint-") :].isdigit()]
    return sorted((p for p in numbered if (p / STATE).is_file()), key=_step)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name[len("checkpoint-") :])


def discard_damaged(folder: Path, say: Callable[[str], None]) -> None:
    """Remove each checkpoint that has a damaged file, from the newest to one without; `say` tells of it."""
    while newest := last_checkpoint(folder):
        file = digests.damaged(newest, STATE)
        if file is None:
            return
        discard(newest)
        before = last_checkpoint(folder)
        then = f"going on from {before.name}" if before else "training starts anew"
        say(f"warning: {newest}: {file} is damaged; {then}")


def discard(checkpoint: Path) -> None:
    """Remove a checkpoint, its STATE first: what a kill leaves must not look complete."""
    (checkpoint / STATE).unlink(missing_ok=True)
    shutil.rmtree(checkpoint, ignore_errors=True)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint of `folder`, if any."""
    return next(reversed(checkpoints(folder)), None)


def check_processes(checkpoint: Path) -> None:
    """Raise UserError unless `checkpoint` was saved by as many processes as there are now, sharded or not.

    Each has its own part of a rollout, its own random state, and of sharded weights its own piece.
    """
    then, now = len([*checkpoint.glob("resume*.pt")]), gpus.processes()
    if then != now:
        raise UserError(
            f"{checkpoint}: {then} processes saved it, and {now} cannot go on from it; run the stage on "
            f"{then} GPUs, or remove the checkpoint to start anew"
        )
    sharded = (checkpoint / SHARDS).is_dir()
    if sharded != gpus.sharded():
        was = "was sharded by fsdp" if sharded else "was not sharded"
        raise UserError(f"{checkpoint}: its stage {was}; set resources.shard as then, or remove it")


def state_file(checkpoint: Path) -> Path:
    """The file of what this process holds in memory: STATE, or resume_<rank>.pt if it is not the first."""
    return checkpoint / (STATE if gpus.first() else f"resume_{gpus.rank()}.pt")


def _sync(path: Path) -> None:
    """Force a file or folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ExactResume(Trainer):
    """Mixin for a `Trainer`: atomic checkpoints, exact resume, and a stop at the first non-finite number."""

    args: Any  # of the subclass's own configuration class
    saving = False
    resumed = 0  # times a run was continued from a checkpoint
    earlier_s = 0.0  # seconds spent before this process
    began = 0.0

    def create_accelerator_and_postprocess(self):
        super().create_accelerator_and_postprocess()
        plugin = getattr(self.accelerator.state, "fsdp_plugin", None)
        if plugin and plugin.mixed_precision_policy:
            # accelerate would round log-probabilities and rewards to 8 bits as they leave the model
            plugin.mixed_precision_policy = replace(
                plugin.mixed_precision_policy, output_dtype=None, reduce_dtype=torch.float32
            )

    # -- what a checkpoint holds beside transformers' own state ---------------------------------------

    def held_state(self) -> dict[str, Any]:
        """Tensors, numbers, strings and containers of them: it is loaded with `weights_only=True`."""
        return {
            "summed_loss": self._tr_loss,
            "last_logged": self._globalstep_last_logged,
            "spent_s": self.spent_s(),
            "resumed": self.resumed,
        }

    def begin_anew(self) -> None:
        """Remove what a killed run has left outside of its checkpoints; there is none to go on from."""

    def restore_held_state(self, state: dict[str, Any]) -> None:
        """Set what `held_state` returned."""
        self._tr_loss = state["summed_loss"].to(self.args.device)
        self._globalstep_last_logged = state["last_logged"]
        self.earlier_s = state["spent_s"]
        self.resumed = state["resumed"] + 1

    def spent_s(self) -> float:
        """Training seconds so far, over all processes that worked on this run."""
        return self.earlier_s + (time.perf_counter() - self.began)

    # -- saving ----------------------------------------------------------------------------------------

    def _get_output_dir(self, trial):
        folder = super()._get_output_dir(trial)
        return os.path.join(folder, PARTIAL) if self.saving else folder

    def create_model_card(self, *args, **kwargs):
        """Write none: the card of a checkpoint would only cost time."""

    def _save_checkpoint(self, model, trial):
        folder = Path(self.args.output_dir)
        good = last_checkpoint(folder)
        try:
            with saving(
                f"the checkpoint of step {self.state.global_step}",
                folder,
                f"last good checkpoint: {good or 'none'}; ",
            ):
                self._write_checkpoint(model, trial, folder)
        except UserError:
            shutil.rmtree(folder / PARTIAL, ignore_errors=True)
            raise
        if self.args.should_save:
            for old in checkpoints(folder)[: -max(self.args.save_total_limit or 1, 1)]:
                discard(old)

    def _write_checkpoint(self, model, trial, folder: Path) -> None:
        name = f"checkpoint-{self.state.global_step}"
        partial = folder / PARTIAL / name
        if self.args.should_save:
            shutil.rmtree(folder / PARTIAL, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        self.saving = True
        try:
            super()._save_checkpoint(model, trial)
        finally:
            self.saving = False
        if not self.args.should_save:
            torch.save(self.held_state(), state_file(partial))
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            torch.save(self.held_state(), partial / STATE)
            digests.write(partial, STATE)
            for path in [*partial.rglob("*"), partial]:
                _sync(path)
            partial.replace(folder / name)
            _sync(folder)

    # -- resuming --------------------------------------------------------------------------------------

    def train(self, *args, **kwargs):
        self.began = time.perf_counter()
        return super().train(*args, **kwargs)

    def _run_epoch(self, model, epoch, train_dataloader, *args, **kwargs):
        # with several processes accelerate does not pass the epoch to the sampler where batches are skipped
        sampler = train_dataloader.batch_sampler
        while hasattr(sampler, "batch_sampler"):
            sampler = sampler.batch_sampler
        if hasattr(getattr(sampler, "sampler", None), "set_epoch"):
            sampler.sampler.set_epoch(epoch)
        return super()._run_epoch(model, epoch, train_dataloader, *args, **kwargs)

    def _load_rng_state(self, checkpoint):
        # transformers calls this on every resume, after everything else is set up
        super()._load_rng_state(checkpoint)
        if checkpoint is not None:
            path = state_file(Path(checkpoint))
            self.restore_held_state(torch.load(path, map_location="cpu", weights_only=True))

    # -- stop at the first non-finite number --------------------------------------------------------------

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        self.require_finite("loss", loss)
        return loss

    def _get_grad_norm(self, model, grad_norm=None):
        # called after the backward pass and before the optimizer's step
        norm = super()._get_grad_norm(model, grad_norm=grad_norm)
        norm = whole(norm)  # of sharded gradients
        self.require_finite("grad_norm", norm)
        return norm

    def require_finite(self, metric: str, value: torch.Tensor | float) -> None:
        """Raise UserError unless `value` is finite."""
        if torch.isfinite(torch.as_tensor(value)).all():
            return
        good = last_checkpoint(Path(self.args.output_dir))
        raise UserError(
            f"step {self.state.global_step + 1}: {metric} is {float(value)}, training cannot go on; "
            f"last good checkpoint: {good or 'none'}; a lower learning_rate or max_grad_norm often helps"
        )
