"""The command that `srun` starts on each machine of a stage.

    python -m encore.runtime.node ENDPOINT GPUS LOG ARG…

ENDPOINT: address and port on the first machine, where the processes meet. GPUS: GPUs of each machine; with 0
it has one process, without a GPU. LOG: the log of the stage. ARG…: the command line of encore.stages.

It calls the functions of torchrun, so that the failure of a process can be reported in one line. The
rendezvous is static: processes are numbered in the order of the machines, so the first is on the first
machine.
"""

import dataclasses
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from encore.errors import UserError, first_line
from encore.runtime import gpus, nodes

NAME = "SLURMD_NODENAME"  # variable in which Slurm gives this machine's name
ARRIVAL = 300  # seconds that a machine waits for the others
# seconds from a failure until the other processes are ended, because one of them may know the cause
LAST_WORDS = 2.0


def main(arguments: list[str]) -> int:
    """Start this machine's processes, wait for them, and return the exit status.

    It is 0 if all have succeeded. After a failure it is 1, and a line that begins with FAILED reports why.
    """
    endpoint, count, log, *of_stage = arguments
    names, name = os.environ[nodes.NAMES].split(","), os.environ[NAME]
    number = names.index(name)
    if number:
        file = os.open(nodes.log_of(Path(log), number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(file, sys.stderr.fileno())
    try:
        with gpus.reserved(int(count), lambda line: print(f"node {name}: {line}", flush=True)):
            failure = _launch(len(names), number, endpoint, max(int(count), 1), of_stage)
    except UserError as error:
        failure = nodes.Failure(str(error), time.time())
    if failure:
        told = json.dumps({"node": name} | dataclasses.asdict(failure))
        sys.stdout.write(
            f"{nodes.FAILED}{told}\n"
        )  # printed by one write; print would write the end of the line separately
        sys.stdout.flush()
        time.sleep(LAST_WORDS)
    return 1 if failure else 0


def _launch(
    machines: int, number: int, endpoint: str, processes: int, arguments: list[str]
) -> nodes.Failure | None:
    """Return why the stage has failed on this machine; None if the stage is done."""
    # imported here, because torch reads the visible GPUs once
    from torch.distributed import DistNetworkError, DistStoreError
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException  # see above
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # see above
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch  # see above

    with tempfile.TemporaryDirectory(prefix="encore-node-") as folder:
        config = LaunchConfig(
            min_nodes=machines,
            max_nodes=machines,
            nproc_per_node=processes,
            run_id=os.environ.get(nodes.JOB, "stage"),
            rdzv_backend="static",
            rdzv_endpoint=endpoint,
            rdzv_configs={"rank": number, "timeout": ARRIVAL},
            max_restarts=0,
            logs_specs=DefaultLogsSpecs(folder),
        )
        try:
            elastic_launch(config, sys.executable)("-m", "encore.stages", *arguments)
        except ChildFailedError as error:
            return min(
                (_failure(rank, error_of_rank) for rank, error_of_rank in error.failures.items()),
                key=nodes.order,
            )
        # Slurm ends this machine's part, because another machine or the job has failed
        except SignalException as error:
            if noted := [json.loads(path.read_text()) for path in Path(folder).rglob("error.json")]:
                first = min(noted, key=lambda error_of_rank: error_of_rank["at"])
                return nodes.Failure(f"process {first['rank']}: {first['message']}", first["at"])
            raise SystemExit(128 + error.sigval) from None
        except (DistNetworkError, DistStoreError) as error:
            why = f"not all nodes have met at {endpoint} within {ARRIVAL} s: {first_line(error)}"
            return nodes.Failure(why, time.time())
    return None


def _failure(rank: int, failure: Any) -> nodes.Failure:
    """Return the failure that a process has noted, or the way in which it ended.

    `failure` is torchrun's ProcessFailure.
    """
    noted, code = failure.error_file_data, failure.exitcode
    if "at" in noted:
        return nodes.Failure(f"process {rank}: {noted['message']}", noted["at"])
    how = failure.signal_name() if code < 0 else f"status {code}"
    # NCCL aborts a process that waits in vain, and torchrun terminates the other processes after a failure
    killed = code < 0 and -code not in (signal.SIGABRT, signal.SIGTERM)
    return nodes.Failure(f"process {rank}: ended by {how}", time.time(), killed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
