"""A Slurm cluster of two nodes on this machine, with daemons, ports and files of its own.

It needs slurmctld, slurmd, srun, sbatch, squeue, scancel and scontrol (Debian: slurm-wlm), but neither munge
nor a file in /etc. Each node has two GPUs by name: Slurm takes any device for one, and only counts them.
A job of partition `urgent` takes the place of one of `main`, which goes back to the queue if its submission
said that it may.
Snakemake's executor takes SLURM_CONF from its jobs, so PATH has commands that set it.
"""

import contextlib
import getpass
import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from encore.runtime.ports import free_ports

COMMANDS = ("srun", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
DAEMONS = ("slurmctld", "slurmd")
NAMES = ("n1", "n2")
CONFIG = """
ClusterName=own
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MpiDefault=none
GresTypes=gpu
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=16 RealMemory=8000 Gres=gpu:2
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=16 RealMemory=8000 Gres=gpu:2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=0
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=n1,n2 MaxTime=INFINITE State=UP PriorityTier=2
"""

# what a user of this cluster writes into profiles/slurm
FILLED = {
    "<account>": "none",
    "<cpu-partition>": "main",
    "<gpu-partition>": "main",
    "# slurm-no-account": "slurm-no-account",
    "# slurm-status-command": "slurm-status-command",
}


def lacks() -> list[str]:
    """The programs of Slurm that this machine has not got, and the right to make a device."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    missing = [name for name in (*COMMANDS, *DAEMONS) if not shutil.which(name, path=path)]
    return missing + ["root"] * (os.getuid() != 0)


def filled(profile: str) -> str:
    """The text of profiles/slurm with the blanks filled in."""
    for old, new in FILLED.items():
        assert old in profile
        profile = profile.replace(old, new)
    return profile


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Start it in `folder`; the environment in which its commands are found. It ends with the block."""
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    config = folder / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    config.write_text(CONFIG.format(host=host, ports=free_ports(3), user=getpass.getuser(), folder=folder))
    for number in (0, 1):
        os.mknod(folder / f"gpu{number}", 0o600 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null
    (folder / "gres.conf").write_text(f"NodeName=n[1-2] Name=gpu File={folder}/gpu[0-1]\n")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    for name in COMMANDS:
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nSLURM_CONF={config} exec {shutil.which(name, path=path)} "$@"\n')
        command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{path}", "SLURM_CONF": str(config)}
    daemons = [("slurmctld", "-D", "-c"), *(("slurmd", "-D", "-N", name) for name in NAMES)]
    with (folder / "daemons.log").open("w") as log:
        running = [
            subprocess.Popen([*daemon, "-f", str(config)], env=environment, stdout=log, stderr=log)
            for daemon in daemons
        ]
    try:
        _wait(environment, folder)
        yield environment
    finally:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["scancel", "--user", getpass.getuser()], env=environment, timeout=30, capture_output=True
            )
            _until(lambda: not _asked(environment, "squeue", "--noheader"), 20)
        for daemon in reversed(running):
            daemon.terminate()
        for daemon in running:
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:  # a slurmd whose node is down may wait for what ran there
                daemon.kill()
                daemon.wait()
        _end_jobs(folder)


def _end_jobs(folder: Path) -> None:
    """Kill what a job has left: a slurmd that has ended kills none that does not mind its SIGTERM."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder / "bin") in process.environ().get("PATH", "") and process.pid != os.getpid():
                process.kill()


def _wait(environment: dict[str, str], folder: Path) -> None:
    ready = ["sinfo", "--noheader", "--partition=main", "--states=idle", "--format=%D"]
    if not _until(lambda: _asked(environment, *ready).strip() == "2", 60):
        logs = [path.read_text()[-2000:] for path in sorted(folder.glob("*.log"))]
        raise RuntimeError("Slurm has not started:\n" + "\n".join(logs))


def _until(holds, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.2)
    return False


def _asked(environment: dict[str, str], *command: str) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30).stdout
