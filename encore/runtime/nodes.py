"""A stage on several machines: `srun` starts a launcher on each machine of the stage's Slurm job.

The launchers (encore.runtime.node) start the processes that train. If one fails, Slurm ends the others, and
one line says which failed. All machines must see the same files: a checkpoint holds each process's part.
"""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from encore.errors import UserError, first_line
from encore.runtime import gpus
from encore.runtime.ports import free_ports

JOB = "SLURM_JOB_ID"
NAMES = "ENCORE_NODES"  # the machines that train, separated by commas
SERVER = "ENCORE_VLLM_NODE"  # the machine reserved for a vLLM server
FAILED = "encore-node-failed "  # beginning of the line by which a launcher reports a failure; JSON follows
# srun's own report of a task, such as "srun: error: n2: task 1: Killed"
OF_TASK = re.compile(r"srun: error: (\S+): tasks? [\d,-]+: (.+)")
OF_SRUN = re.compile(r"srun: (?:error|fatal): (.+)")
# Slurm's variables that name the job; its other variables would be options of every later srun
KEPT = {JOB, "SLURM_CONF", "SLURM_CLUSTER_NAME", "SLURM_CLUSTERS"}


@dataclass(frozen=True)
class Failure:
    """A failure on a machine, with its time in seconds since the epoch."""

    what: str
    at: float
    killed: bool = False  # whether it was killed from outside, for example because memory was short


def order(failure: Failure) -> tuple[bool, float]:
    """Return a sort key that puts causes before their effects.

    The killed process comes first, whatever the times say: its end is noticed a moment later than the errors
    of the processes that lost it.
    """
    return not failure.killed, failure.at


@dataclass(frozen=True)
class Count:
    """The machines and GPUs of a stage; of several machines, the last may be reserved for a vLLM server."""

    nodes: int
    gpus: int
    vllm_gpus: int


def launch(count: Count, arguments: Sequence[str], log: Path, say: Callable[[str], None]) -> None:
    """Run a stage on the first machines of this Slurm job, with the same number of GPUs on each.

    A process trains on each GPU, or on each machine if no GPU is asked for. `arguments` are the command line
    of encore.stages. The logs of all machines but the first are beside `log`, as <name>.node1.log and so on.
    Raises UserError outside of a job, in a job with fewer machines, if GPUs are spread over them unequally,
    and if a machine fails.
    """
    names = _names(count.nodes)
    each, rest = divmod(count.gpus, count.nodes)
    if rest or count.vllm_gpus not in (0, each):
        raise UserError(
            f"resources.nodes: {count.gpus} GPUs on {count.nodes} nodes, {count.vllm_gpus} of them for a "
            "vLLM server; expected equally many on each, and the whole last node for the server"
        )
    training = names[:-1] if count.vllm_gpus else names
    # free on this machine, which is the first of the job if Snakemake has submitted it; port 0 would be known
    # to this machine alone
    (port,) = free_ports(1)
    endpoint = f"{address(names[0])}:{port}"
    command = [
        *step(training, each),
        *(sys.executable, "-m", "encore.runtime.node", endpoint, str(each), str(log.absolute()), *arguments),
    ]
    environment = environment_of_step(os.environ) | {NAMES: ",".join(training)}
    if count.vllm_gpus:
        environment |= {SERVER: names[-1], gpus.SERVING: ",".join(map(str, range(each)))}
    more = f" and {len(training) - 1} more" if training[1:] else ""
    say(f"training on {names[0]}{more}{f', the vLLM server on {names[-1]}' if count.vllm_gpus else ''}")
    status, failures, said = _run(command, environment)
    if status:
        raise UserError(failure_line(status, failures, said, training, log))


def step(names: Sequence[str], gpus_each: int) -> list[str]:
    """Return the prefix that runs a command once on each of these machines, and ends all if one fails.

    --overlap gives the step the job's memory and processors, whatever other steps have. On each machine it
    gets `gpus_each` GPUs; without this number it could get fewer GPUs than the job has.
    """
    number = len(names)
    return [
        *("srun", f"--nodes={number}", f"--ntasks={number}", "--ntasks-per-node=1"),
        *(f"--nodelist={','.join(names)}", "--overlap", "--cpu-bind=quiet,none", "--mem=0"),
        *([f"--gpus-per-node={gpus_each}"] if gpus_each else []),
        *("--kill-on-bad-exit=1", "--input=none"),
    ]


def environment_of_step(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for `step`: `environment` without Slurm's variables, except those in KEPT."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("SLURM_", "SRUN_")) or name in KEPT
    }


def address(name: str) -> str:
    """Return the address at which Slurm itself reaches the machine of this name."""
    return _field(_scontrol("node", name), "NodeAddr")


def told_by_launcher() -> bool:
    """Return whether `launch` has started this process, and will report its failure in one line."""
    return NAMES in os.environ


def server() -> str | None:
    """Return the machine of this stage's vLLM server; None if it is this machine."""
    return os.environ.get(SERVER)


def log_of(log: Path, number: int) -> Path:
    """Return the log of a machine, counted from 0; the first machine's output goes through srun to `log`."""
    return log.with_name(f"{log.stem}.node{number}.log") if number else log


def note(error: BaseException) -> None:
    """Report to torchrun why this process fails, in the file and form of torchrun's own ErrorHandler."""
    if file := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        told = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {first_line(error)}"
        now = time.time()
        noted = {"message": told, "timestamp": int(now), "at": now, "rank": gpus.rank()}
        Path(file).write_text(json.dumps(noted))


def _names(count: int) -> list[str]:
    """Return the first `count` machines of this Slurm job."""
    job = os.environ.get(JOB)
    if not job:
        raise UserError(
            f"resources.nodes: {count} asked for, but this is no Slurm job; run snakemake with "
            f"--workflow-profile profiles/slurm, or in an allocation of your own (salloc --nodes={count})"
        )
    hosts = _scontrol("hostnames", _field(_scontrol("job", job), "NodeList")).split()
    if len(hosts) < count:
        raise UserError(f"resources.nodes: {count} asked for, but Slurm job {job} has {len(hosts)}")
    return hosts[:count]


def _scontrol(what: str, name: str) -> str:
    """Return what Slurm knows of a job, a node or a list of nodes. Raises UserError if it does not answer."""
    command = ["scontrol", "show", what, name, *([] if what == "hostnames" else ["--oneliner"])]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except OSError as error:
        raise UserError(f"resources.nodes: {command[0]}: {error.strerror}") from None
    except subprocess.SubprocessError as error:
        said = str(getattr(error, "stderr", None) or error).strip().splitlines()[-1]
        raise UserError(f"resources.nodes: {' '.join(command[:4])}: {said}") from None


def _field(record: str, name: str) -> str:
    """Return the value of a field such as NodeList=n[1-2] in a record of scontrol."""
    match = re.search(rf"(?:^|\s){name}=(\S+)", record)
    if not match:
        raise UserError(f"resources.nodes: scontrol reports no {name}: {record.strip()[:200]!r}")
    return match[1]


def _run(command: list[str], environment: dict[str, str]) -> tuple[int, dict[str, Failure], list[str]]:
    """Run srun, and return its exit status, machine -> its launcher's failure, and srun's own lines.

    All other output is passed on. If this process is killed, the guard ends srun and all its processes.
    """
    guarded = [sys.executable, "-m", "encore.runtime.guard", str(os.getpid()), *command]
    process = subprocess.Popen(
        guarded,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
    )
    assert process.stdout
    assert process.stderr
    said: list[str] = []
    reader = threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr, said.append))
    reader.start()
    failures: dict[str, Failure] = {}
    for line in process.stdout:
        told, others = read_failures(line)
        failures |= told
        sys.stdout.write(others)
        sys.stdout.flush()
    reader.join()
    return process.wait(), failures, said


def read_failures(line: str) -> tuple[dict[str, Failure], str]:
    """Return machine -> failure for each launcher's report in a line of output, and the line's other text.

    A line can have two reports, or a report and other output: if Python does not buffer its output, a process
    writes the text of a line and its end separately.
    """
    failures, others = {}, ""
    while FAILED in line:
        before, _, rest = line.partition(FAILED)
        told, end = json.JSONDecoder().raw_decode(rest)
        name = told.pop("node")
        failures[name] = Failure(**told)
        others, line = others + before, rest[end:]
    others += line
    return failures, others if others.strip() or not failures else ""


def _pass_on(source: Iterable[str], to: IO[str], keep: Callable[[str], None]) -> None:
    """Write each line of `source` to the log as it arrives, and keep srun's own lines."""
    for line in source:
        to.write(line)
        to.flush()
        if line.startswith("srun: "):
            keep(line.strip())


def failure_line(
    status: int, failures: Mapping[str, Failure], said: list[str], names: Sequence[str], log: Path
) -> str:
    """Return a line that says which machine failed first, and why; the others failed only as a result."""
    of_task = next(filter(None, map(OF_TASK.search, said)), None)  # the first task that ended
    killed = of_task and not of_task[2].startswith(("Exited", "Terminated"))
    if failures and not killed:
        name, first = min(failures.items(), key=lambda item: order(item[1]))
        see = "" if "; see " in first.what else f"; see {log_of(log, names.index(name))}"
        return f"node {name}: {first.what}{see}"
    if of_task:
        number = names.index(of_task[1]) if of_task[1] in names else 0
        return f"node {of_task[1]}: its launcher ended: {of_task[2]}; see {log_of(log, number)}"
    of_srun = next(filter(None, map(OF_SRUN.search, said)), None)
    return (
        f"resources.nodes: srun ended with status {status}: {of_srun[1] if of_srun else 'no word'}; see {log}"
    )
