"""Callbacks of a trainer: progress, curve, models saved for evaluation, warnings, and a stop at SIGTERM."""

import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from encore.learning.resumable import last_checkpoint
from encore.runtime import curves, health, live_curve, sentinel
from encore.runtime.progress import Progress

Keep = tuple[int, Callable[..., None]]  # (N, write): after every N steps, `write` saves the model


class ShowProgress(TrainerCallback):
    """A callback that prints a line from time to time; its clock starts at the first step of this process."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.started = False

    def on_step_begin(self, args, state, control, **kwargs):
        if not self.started:
            self.started = True
            curve = live_curve.path(Path(args.output_dir))
            self.progress.start(state.global_step, state.max_steps, state.num_input_tokens_seen, curve)

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.progress.step(state.global_step, state.max_steps, logs or {}, state.num_input_tokens_seen)


class KeepCurve(TrainerCallback):
    """A callback that writes curve.csv as training goes on.

    On resume it drops the entries that were logged after the checkpoint.
    """

    def on_train_begin(self, args, state, control, **kwargs):
        live_curve.begin(Path(args.output_dir), state.log_history)

    def on_log(self, args, state, control, **kwargs):
        live_curve.add(Path(args.output_dir), state.log_history[-1])


class KeepModel(TrainerCallback):
    """A callback that saves the model after every N steps, to be evaluated later.

    The model after the last step is not saved here, because it is the stage's product.
    """

    def __init__(self, trainer: Any, keep: Keep):
        self.trainer = trainer
        self.every, self.save = keep

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.every == 0 and state.global_step < state.max_steps:
            folder = sentinel.kept_at(Path(args.output_dir), state.global_step)
            self.save(self.trainer.model, folder=folder)


class SaveWhenTold(TrainerCallback):
    """A callback that handles SIGTERM: it saves a checkpoint after the present step and ends the process.

    The exit status is 143, as a shell reports it for SIGTERM. It works for one process only, because several
    processes would have to agree on the step.
    """

    def __init__(self, progress: Progress):
        self.progress = progress
        self.told = False
        self.before: Any = signal.SIG_DFL

    def on_train_begin(self, args, state, control, **kwargs):
        self.before = signal.signal(signal.SIGTERM, self.tell)

    def tell(self, *_: object) -> None:
        self.told = True

    def on_step_end(self, args, state, control, **kwargs):
        control.should_save |= self.told

    def on_save(self, args, state, control, **kwargs):
        if self.told:
            line = (
                f"stopped; all up to step {state.global_step} is saved in {args.output_dir}; "
                "the same command goes on from there"
            )
            self.progress.say(line)
            print(line, file=sys.stderr, flush=True)
            sys.exit(128 + signal.SIGTERM)

    def on_train_end(self, args, state, control, **kwargs):
        signal.signal(signal.SIGTERM, self.before)


class WatchDisk(TrainerCallback):
    """A callback that warns once when the disk has no room for a further checkpoint beside the last one."""

    def __init__(self, progress: Progress):
        self.progress = progress
        self.warned = False

    def on_save(self, args, state, control, **kwargs):
        folder = Path(args.output_dir)
        needed, free = size_mib(last_checkpoint(folder)), shutil.disk_usage(folder).free / 2**20
        if not self.warned and state.global_step < state.max_steps and free < needed:
            self.warned = True
            self.progress.warn(f"{folder}: {free:,.0f} MiB free, and the next checkpoint needs {needed:,.0f}")


class WatchHealth(TrainerCallback):
    """A callback that warns once for each check of the training curve that fails, and stops at an error.

    The whole curve is checked at every twentieth of the run, from the first fifth on. The ratios at the start
    of a rollout and the gap to the sampler are checked at every log line. `precision` is the precision in
    which the policy is trained.
    """

    LOOKS = 20  # number of checks of the curve in a run; each one reads the whole history

    def __init__(self, progress: Progress, precision: health.Precision):
        self.progress = progress
        self.precision = precision
        self.looked = self.LOOKS // 5 - 1
        self.warned: set[str] = set()

    def on_log(self, args, state, control, **kwargs):
        gaps = [entry["sampler_gap"] for entry in state.log_history if "sampler_gap" in entry]
        sampled = health.ratio_at_start(curves.rows(state.log_history[-1:]))
        self.tell(sampled + health.sampler_gap_now(gaps, self.precision))
        now = self.LOOKS * state.global_step // max(state.max_steps, 1)
        if now <= self.looked:
            return
        self.looked = now
        curve = curves.rows(state.log_history)
        when = f"at step {state.global_step}"
        self.tell(health.training(curve, curves.scalars(curve), self.precision, when))

    def tell(self, checks: list[health.Check]) -> None:
        """Warn of the checks that fail for the first time.

        Raises UserError if a check of severity error fails.
        """
        for check in health.stop_at_errors(checks):
            if not check["ok"] and check["check"] not in self.warned:
                self.warned.add(check["check"])
                self.progress.warn(check["message"])


class StepTimes(TrainerCallback):
    """A callback that measures the seconds of this process's first step, which is slow, and of the others."""

    def __init__(self) -> None:
        self.first = self.later = self.began = 0.0
        self.steps = 0

    def on_step_begin(self, args, state, control, **kwargs):
        self.began = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        spent = time.perf_counter() - self.began
        if self.steps:
            self.later += spent
        else:
            self.first = spent
        self.steps += 1

    def rates(self) -> Mapping[str, float]:
        """Return the seconds of the first step, `first_step_s`, and the mean of the later ones, `step_s`.

        Each key is missing if there was no such step.
        """
        known = {"first_step_s": round(self.first, 4)} if self.steps else {}
        return known | ({"step_s": round(self.later / (self.steps - 1), 4)} if self.steps > 1 else {})


def size_mib(checkpoint: Path | None) -> float:
    """Return the size of a checkpoint on disk, in MiB; 0 without a checkpoint."""
    files = checkpoint.rglob("*") if checkpoint else ()
    return round(sum(path.stat().st_size for path in files if path.is_file()) / 2**20, 2)
