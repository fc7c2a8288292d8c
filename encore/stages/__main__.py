"""The command that runs one stage: `python -m encore.stages <kind> --config … --out …/metrics.json`.

The function `run` of `encore.stages.<kind>` does the work; this module does what is common to all stages.
stdout carries progress lines only, stderr the log. The exit status is 0 if the stage is done, and 2 after a
mistake, which is reported in one line.
"""

import argparse
import contextlib
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore import validity
from encore.errors import UserError, known
from encore.recipe.kinds import KINDS
from encore.recipe.kinds.stage import Stage
from encore.recipe.kinds.training import TrainingStage
from encore.runtime import gpus, nodes, provenance, sentinel, tracking
from encore.runtime.determinism import deterministic
from encore.runtime.environment import (
    ask_nothing,
    expandable_segments,
    few_collections,
    keep_imports,
    keep_memory,
    names_hub,
    quiet_environment,
    roles,
    stop_in_one_line,
)
from encore.runtime.extras import require_bitsandbytes, require_liger, require_vllm
from encore.runtime.files import NO_ROOM
from encore.runtime.lock import only_one
from encore.runtime.progress import Progress
from encore.stages.job import Job, typed
from encore.stages.outcome import Outcome

LOG = "train.log"  # file beside metrics.json into which Snakemake writes a stage's stderr


# a function that makes a stage's product in the folder `final` of the job's workdir; its first argument is
# the stage, as the pydantic model of its kind
Run = Callable[[Any, Job], Outcome]


def _known_kind(name: str) -> str:
    """Return `name`. Raises UserError if no kind of stage has this name."""
    known("stage", [name], [*KINDS], "kind")
    return name


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises UserError for an unknown kind, for a config that is not a JSON object, and for an input that is not
    role=path.
    """
    parser = argparse.ArgumentParser(
        prog="python -m encore.stages", description="Run one stage of a recipe.", allow_abbrev=False
    )
    parser.add_argument("kind", type=_known_kind, help=", ".join(KINDS))
    parser.add_argument("--config", required=True, help="the stage's resolved configuration as JSON")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--input", action="append", default=[], metavar="ROLE=METRICS_JSON")
    parser.add_argument("--name", required=True, help="recipe/scale/arm/seedN/stage")
    parser.add_argument("--checkpoints", type=Path, required=True, help="folder of the training state")
    parser.add_argument("--out", type=Path, required=True, help="metrics.json, written last")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpus", type=int, help="how many GPUs to use; default: all that torch sees")
    parser.add_argument("--vllm-gpus", type=int, default=0, help="how many of them a vLLM server gets")
    parser.add_argument("--nodes", type=int, default=1, help="on how many machines of a Slurm job they are")
    parser.add_argument("--shard", choices=["none", "fsdp"], default="none", help="spread the weights")
    parser.add_argument(
        "--track", choices=[tracking.NONE, *tracking.TRACKERS], default=tracking.NONE, help="what follows it"
    )
    options = parser.parse_args(arguments)
    try:
        options.config = json.loads(options.config)
    except ValueError as error:
        raise UserError(f"--config: not JSON: {error}") from None
    if not isinstance(options.config, dict):
        raise UserError("--config: expected a JSON object")
    options.stage, options.evaluated = typed(options.kind, options.config)
    if options.nodes > 1 and options.gpus is None:
        raise UserError("--gpus: missing; with --nodes it is the number on all nodes together")
    options.inputs, options.given = roles(options.input), arguments
    return options


def _shares_memory(args: Any) -> bool:
    """Return whether a trainer's `args` ask for a vLLM engine in its process that shares memory.

    It shares it with the trainer, by its sleep mode, or with other GPUs.
    """
    if not getattr(args, "use_vllm", False) or args.vllm_mode != "colocate":
        return False
    return args.vllm_enable_sleep_mode or args.vllm_tensor_parallel_size > 1


def _saved(folder: Path) -> str:
    """Return a phrase for the user about what `folder` has saved of a training if the training ends now."""
    names = (path.name.removeprefix("checkpoint-") for path in folder.glob("checkpoint-*"))
    step = max((int(name) for name in names if name.isdigit()), default=None)
    if step is None:
        return "no checkpoint is saved yet; the same command starts the stage anew"
    return f"all up to step {step} is saved in {folder}; the same command goes on from there"


def work(options: argparse.Namespace, progress: Progress) -> None:
    """Run the stage on as many GPUs as it asks for, unless its result already exists."""
    record = {
        "kind": options.kind,
        "config": options.config,
        "seed": options.seed,
        "inputs": {role: sentinel.read_sentinel(path)["digest"] for role, path in options.inputs.items()},
    }
    if gpus.spread():  # the process that became torchrun holds the lock
        return _perform(options, record, progress)
    with only_one(
        options.checkpoints / "lock",
        lambda holder: progress.say(f"waiting for process {holder}, which works in {options.checkpoints}"),
    ) as lock:
        if validity.is_of(options.out, record):
            return progress.say(f"nothing to do: {options.out} is there and valid")
        require_vllm(options.config)
        require_bitsandbytes(options.config)
        require_liger(options.config)
        if options.track != tracking.NONE:
            tracking.require(options.track)
        if options.nodes > 1:
            count = nodes.Count(options.nodes, options.gpus or 0, options.vllm_gpus)
            return nodes.launch(count, options.given, options.out.with_name(LOG), progress.say)
        progress.note("loading")
        with gpus.reserved(options.gpus, progress.say, options.vllm_gpus) as held:
            training = (options.gpus or 0) - options.vllm_gpus
            if options.kind in gpus.SPREAD and training > 1:
                gpus.launch(training, options.given, [lock, *held])
            _perform(options, record, progress)


def _perform(options: argparse.Namespace, record: dict[str, Any], progress: Progress) -> None:
    """Run the stage, and write metrics.json last."""
    import torch  # imported late, like the stage's imports, because the environment must be set first

    torch.set_num_threads(options.threads)
    stage: Stage = options.stage
    with deterministic(stage.deterministic, trains=isinstance(stage, TrainingStage)):
        run: Run = importlib.import_module(f"encore.stages.{options.kind}").run
        keep_imports()
        started = provenance.now()
        job = Job(options.inputs, options.seed, options.checkpoints, options.out, progress, options.evaluated)
        outcome = run(stage, job)
    if not gpus.first():
        return
    record["upstream"] = {role: path.as_posix() for role, path in options.inputs.items()}
    outcome.write(options.out, options.checkpoints / "final", record, started)
    outcome.clean()
    progress.end(f"done: {options.out}")


def load() -> None:
    """Import the modules that `main` needs, before there is a job; the environment must be set already."""
    for kind in KINDS:
        importlib.import_module(f"encore.stages.{kind}")
    # imported here, because the environment is set only now
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    get_checkpoint_conversion_mapping("")  # the first call, made for the first model, compiles 800 patterns


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status; `arguments` defaults to the command line."""
    if not gpus.first():
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    say: Callable[[str], None] = print
    ask_nothing()
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        progress = Progress(options.name)
        say = progress.say
        if arguments is None:  # the process belongs to this command alone
            stop_in_one_line(say, lambda: _saved(options.checkpoints))
        few_collections()
        keep_memory()
        quiet_environment(names_hub(options.config))
        if isinstance(options.stage, TrainingStage) and not _shares_memory(options.stage.args):
            expandable_segments()
        gpus.shard(options.shard)
        tracking.choose(options.track, options.name)
        try:
            work(options, progress)
        except FileNotFoundError as error:
            if str(error.filename) not in {str(path) for path in options.inputs.values()}:
                raise
            raise UserError(f"--input: {error.filename} does not exist; run its stage first") from None
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise UserError(
                f"{error.filename or options.checkpoints}: {error.strerror}; make room"
            ) from error
    except UserError as error:
        if not nodes.told_by_launcher():
            say(f"error: {error}")
        with contextlib.suppress(OSError):  # the log may be on the disk that is full
            print(f"error: {error}", file=sys.stderr)
        nodes.note(error)
        return 2
    except Exception as error:
        nodes.note(error)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
