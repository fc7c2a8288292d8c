"""The run of a trainer to its last step, from the beginning or from the checkpoint of an earlier process."""

import shutil
from pathlib import Path
from typing import Any

from transformers import PrinterCallback, TrainerCallback
from transformers.trainer_callback import TrainerState

from encore.errors import UserError
from encore.learning import tracking
from encore.learning.callbacks import (
    Keep,
    KeepCurve,
    KeepModel,
    SaveWhenTold,
    ShowProgress,
    StepTimes,
    WatchDisk,
    WatchHealth,
    size_mib,
)
from encore.learning.reference import exact_outputs
from encore.learning.resumable import (
    PARTIAL,
    OrderOfEpoch,
    Resumable,
    Resume,
    check_processes,
    checkpoints,
    discard,
    discard_damaged,
    last_checkpoint,
)
from encore.learning.sampler_gap import precision
from encore.learning.tiles import narrow_tiles
from encore.models import lora
from encore.models.quantized import learn_in_float32
from encore.runtime import gpus, health, live_curve
from encore.runtime.progress import Progress
from encore.runtime.provenance import Fit


def fit(trainer: Resumable, progress: Progress, keep: Keep | None = None) -> Fit:
    """Train to the last step, from the newest complete checkpoint if there is one; return a summary.

    `keep`: save the model after every N steps as well. Raises UserError if a loss or gradient is not finite,
    if a checkpoint cannot be saved, if the data ends before the last step, if weights that should be sharded
    would not be, or if another number of processes saved the checkpoint.
    """
    _shard(trainer)
    learn_in_float32(trainer.model)
    exact_outputs(trainer.accelerator)
    folder, times = Path(trainer.args.output_dir), StepTimes()
    if gpus.first():
        discard_damaged(folder, progress.say)
        _remove_incomplete(folder)
    trainer.accelerator.wait_for_everyone()
    trained_in = precision(trainer.args, trainer.model, trainer.rounded_sampler)
    _watch(trainer, progress, keep, trained_in, times)
    newest = last_checkpoint(folder)
    if newest:
        check_processes(newest)
    else:
        trainer.begin_anew()
    state = TrainerState.load_from_json(str(newest / "trainer_state.json")) if newest else None
    if newest and state and state.global_step >= state.max_steps:
        # without this, transformers would train one more step
        progress.say(f"all {state.global_step} steps were done before")
        trainer._load_from_checkpoint(str(newest))
        trainer.state = state
        trainer.restore(newest)
        spent = trainer.clock.earlier_s
    else:
        _train(trainer, newest, state.global_step if state else 0)
        spent = trainer.clock.spent_s()
    state = trainer.state
    if state.global_step < state.max_steps:
        raise UserError(
            f"training ended at step {state.global_step} of {state.max_steps}: no data left for a step"
        )
    epochs, state_mib = round(state.epoch or 0.0, 6), size_mib(last_checkpoint(folder))
    return Fit(
        list(state.log_history),
        state.global_step,
        state.num_input_tokens_seen,
        spent,
        trainer.clock.resumed,
        _made_on(trainer.args),
        {**times.rates(), "epochs": epochs, "state_mib": state_mib},
        trained_in,
        trainer.clock.earlier_cpu_s,
    )


def _shard(trainer: Resumable) -> None:
    """Prepare a model that is to be sharded. Raises UserError if the trainer would not shard it."""
    if gpus.sharded():
        if not (trainer.is_fsdp_enabled and trainer.args.world_size > 1):
            raise UserError(
                "resources.shard: fsdp spreads weights over several GPUs, which this stage does not have"
            )
        lora.show_ends(trainer.model)


def _watch(
    trainer: Resumable, progress: Progress, keep: Keep | None, trained_in: health.Precision, times: StepTimes
) -> None:
    """Add our callbacks to a trainer, and remove the callback by which transformers prints."""
    trainer.remove_callback(PrinterCallback)
    callbacks: list[TrainerCallback] = [OrderOfEpoch(), ShowProgress(progress), KeepCurve()]
    callbacks += [KeepModel(trainer, keep)] if keep else []
    callbacks += [WatchHealth(progress, trained_in)]
    callbacks += [WatchDisk(progress)] if gpus.first() else []
    callbacks += [SaveWhenTold(progress)] if trainer.args.world_size == 1 else []
    for callback in (*callbacks, times):
        trainer.add_callback(callback)


def _train(trainer: Resumable, newest: Path | None, step: int) -> None:
    """Train on from the checkpoint `newest` at `step`, or from the beginning, with its trackers."""
    if newest:
        trainer.add_callback(Resume(trainer, newest))
    with tracking.followed(trainer.args, step) as trackers:
        for tracker in trackers:
            trainer.remove_callback(type(tracker.inner))  # the callback that the trainer has made
            trainer.add_callback(tracker)
        with narrow_tiles(trainer.model):
            trainer.clock.start()
            trainer.train(resume_from_checkpoint=str(newest) if newest else None)


def _made_on(args: Any) -> dict[str, int | str]:
    """Return a training's processes, nodes and sharding, and how a step's batch is divided among them."""
    part = args.train_batch_size * args.gradient_accumulation_steps
    return {
        "processes": args.world_size,
        "nodes": gpus.nodes(),
        "shard": "fsdp" if gpus.sharded() else "none",
        "global_batch": part * args.world_size,
        "per_device_train_batch_size": args.train_batch_size,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
    }


def clean(folder: Path) -> None:
    """Remove the training state, which is not needed once the stage is done."""
    for path in checkpoints(folder):
        discard(path)
    _remove_incomplete(folder)
    live_curve.path(folder).unlink(missing_ok=True)
    tracking.wandb_number(folder).unlink(missing_ok=True)
    for path in folder.glob("reference-*.arrow"):  # log-probabilities that DPO has precomputed
        path.unlink()


def _remove_incomplete(folder: Path) -> None:
    """Remove the remains of a checkpoint that a killed process was writing or removing."""
    for path in [folder / PARTIAL, *(set(folder.glob("checkpoint-*")) - set(checkpoints(folder)))]:
        shutil.rmtree(path, ignore_errors=True)
