"""Experiment trackers: TensorBoard, Trackio or Weights & Biases, fed by transformers' callbacks.

A training that continues from a checkpoint continues its tracked run. A training that begins anew begins a
new run, except with Trackio, which knows runs by their names alone and continues the old run.
"""

import contextlib
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState
from transformers.integrations import TensorBoardCallback, TrackioCallback, WandbCallback

from encore.errors import UserError, first_line
from encore.runtime import files, gpus
from encore.runtime.tracking import FOLDER


class Followed(TrainerCallback):
    """A wrapper of a tracker's callback, which passes on only numbers and sends what it prints to stderr."""

    def __init__(self, inner: TrainerCallback):
        self.inner = inner

    def on_train_begin(self, args, state, control, **kwargs):
        with contextlib.redirect_stdout(sys.stderr):
            self.inner.on_train_begin(args, state, control, **kwargs)

    def on_log(self, args, state, control, logs=None, **kwargs):
        numbers = {name: value for name, value in (logs or {}).items() if isinstance(value, int | float)}
        with contextlib.redirect_stdout(sys.stderr):
            self.inner.on_log(args, state, control, logs=numbers, **kwargs)

    def on_train_end(self, args, state, control, **kwargs):
        with contextlib.redirect_stdout(sys.stderr):
            self.inner.on_train_end(args, state, control, **kwargs)


@contextlib.contextmanager
def followed(args: Any, step: int) -> Iterator[list[Followed]]:
    """Yield the trackers' callbacks that `args.report_to` names; [] if this is not the first process.

    The training continues after `step`, which is 0 if it begins anew. Raises UserError if wandb cannot begin,
    for example without a login.
    """
    begun = [BEGIN[name](args, step) for name in args.report_to if name in BEGIN and gpus.first()]
    yield [Followed(callback) for callback in begun]
    if "wandb" in args.report_to and gpus.first():
        # imported here, because it is an optional package
        import wandb

        wandb.finish()


@contextlib.contextmanager
def reporting(args: Any, model: Any, total: int) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Yield a function that sends a log entry to the trackers of `followed`.

    It serves a loop of `total` steps that runs without a Trainer.
    """
    state, control = TrainerState(max_steps=total), TrainerControl()
    with followed(args, 0) as callbacks:
        for callback in callbacks:
            callback.on_train_begin(args, state, control, model=model)

        def report(entry: Mapping[str, Any]) -> None:
            state.global_step = entry["step"]
            logs = {name: value for name, value in entry.items() if name != "step"}
            for callback in callbacks:
                callback.on_log(args, state, control, model=model, logs=logs)

        yield report
        for callback in callbacks:
            callback.on_train_end(args, state, control, model=model)


def _tensorboard(args: Any, step: int) -> TrainerCallback:
    """Return the callback that writes events; the events of a killed process after `step` are hidden."""
    # imported here, because tensorboard is an optional package
    from torch.utils.tensorboard import SummaryWriter

    folder = FOLDER / args.project / args.run_name
    if not step:
        shutil.rmtree(folder, ignore_errors=True)
    return TensorBoardCallback(SummaryWriter(str(folder), purge_step=step + 1))


def _trackio(args: Any, step: int) -> TrainerCallback:
    return TrackioCallback()


def wandb_number(folder: Path) -> Path:
    """Return the file that holds wandb's id of a run, beside the training state in `folder`."""
    return folder / "wandb-run"


def _wandb(args: Any, step: int) -> TrainerCallback:
    """Return the callback of wandb's run, whose id is kept with the training state."""
    # imported here, because it is an optional package
    import wandb

    number = wandb_number(Path(args.output_dir))
    if not step or not number.exists():
        files.write(number, uuid.uuid4().hex)
    FOLDER.mkdir(exist_ok=True)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            wandb.init(
                project=args.project,
                name=args.run_name,
                id=number.read_text(encoding="utf-8"),
                resume="allow",
                dir=str(FOLDER),
            )
    except wandb.Error as error:
        raise UserError(f"--config track=wandb: {first_line(error)}") from error
    return WandbCallback()


BEGIN = {"tensorboard": _tensorboard, "trackio": _trackio, "wandb": _wandb}
