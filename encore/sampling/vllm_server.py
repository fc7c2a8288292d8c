"""A vLLM server that belongs to a stage: the stage starts it, waits for it, watches it and ends it.

TRL's `vllm_mode: server` speaks to it (trl/generation/vllm_client.py): completions by HTTP, new weights by
NCCL. The command is the same as in `trl vllm-serve` (trl/scripts/vllm_serve.py).
"""

import http.client
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from trl.scripts.vllm_serve import ScriptArguments, build_command

from encore.errors import UserError
from encore.recipe.grpo_args import GrpoArgs
from encore.runtime import gpus, nodes
from encore.runtime.determinism import BATCH_INVARIANT
from encore.runtime.environment import ALLOCATOR, EXPANDABLE
from encore.runtime.progress import clock_text

HOST = "127.0.0.1"  # the address on the stage's node, which no other node can reach
MEMORY = 0.9  # share of its GPUs' memory; unlike a colocated engine, the server has the GPUs to itself
LOOK = 0.5  # seconds between two checks whether the server answers
EVERY = 15.0  # seconds between two lines of progress while the server does not answer yet
TAIL = 65536  # bytes at the end of the log that are searched for an error
LONGEST = 300  # largest number of characters of the server's error in our error line
# prefixes of the variables that torchrun sets for a rank
OF_TORCHRUN = (
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    *("MASTER_", "GROUP_", "ROLE_", "TORCHELASTIC_"),
)
# a line of Python's errors, after the prefix of a logger or a worker
ERROR = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Interrupt)(?::| \().*")


def command(
    model: str, host: str, port: int, workers: int, dtype: str, seed: int, args: GrpoArgs
) -> list[str]:
    """Return the command that starts a vLLM server of `model`, a folder, on `workers` GPUs.

    The server can be reached only at the address `host`. Unless the recipe sets vllm_gpu_memory_utilization
    in `args`, it is MEMORY.
    """
    stated = "vllm_gpu_memory_utilization" in args.model_fields_set
    options = ScriptArguments(
        model=model,
        host=host,
        port=port,
        tensor_parallel_size=max(workers, 1),
        dtype=dtype,
        gpu_memory_utilization=args.vllm_gpu_memory_utilization if stated else MEMORY,
        max_model_len=args.vllm_max_model_length,
        vllm_model_impl=args.vllm_model_impl,
        log_level="warning",
    )
    # generation-config: otherwise the model's own limits and penalties apply to what TRL does not set
    our_options = ["--load-format", "safetensors", "--generation-config", "vllm", "--seed", str(seed)]
    return build_command(options, our_options)


def environment(names: str, deterministic: bool = False) -> dict[str, str]:
    """Return the environment variables of a server. `names`: its GPUs, as in CUDA_VISIBLE_DEVICES.

    `deterministic`: whether its numbers are independent of which requests it computes together.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_TORCHRUN)}
    if kept.get(ALLOCATOR[0]) == EXPANDABLE:  # a server on several GPUs could not share such memory
        del kept[ALLOCATOR[0]]
    # enables the endpoints that receive weights
    kept |= {gpus.VISIBLE: names, "VLLM_SERVER_DEV_MODE": "1"}
    return kept | BATCH_INVARIANT if deterministic else kept


class Server:
    """A vLLM server that starts when the object is made, and appends its output to the file `log`.

    `say` prints lines of progress, and an error if the server ends later.
    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        host: str,
        port: int,
        log: Path,
        say: Callable[[str], None],
    ):
        self.host, self.port = host, port
        self.log, self.say, self.closing = log, say, False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            self.begins = file.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "encore.runtime.guard", str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment,
                start_new_session=True,  # Ctrl-C must reach only the stage, which then ends the server
            )

    def ready(self, timeout: float) -> None:
        """Wait until the server answers. If it ends later, end this process too, with one error line.

        Raises UserError if the server ends before, or does not answer within `timeout` seconds.
        """
        began = last = time.monotonic()
        while not _healthy(self.host, self.port):
            if (status := self.process.poll()) is not None:
                raise UserError(f"vllm_mode: {self._told(f'the vLLM server ended with status {status}')}")
            now = time.monotonic()
            if now - began > timeout:
                late = f"the vLLM server has not answered for {timeout:g} s"
                raise UserError(f"args.vllm_server_timeout: {self._told(late)}")
            if now - last >= EVERY:
                last = now
                self.say(
                    f"waiting for the vLLM server: {clock_text(now - began)} of at most {clock_text(timeout)}"
                )
            time.sleep(LOOK)
        self.say(f"the vLLM server answers after {clock_text(time.monotonic() - began)}")
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        """End the server and wait for its end."""
        self.closing = True
        self.process.terminate()
        self.process.wait()

    def _watch(self) -> None:
        """End this process when the server ends; otherwise the trainer would wait for it forever.

        Saved results stay good: files are written completely or not at all.
        """
        status = self.process.wait()
        if not self.closing:
            line = f"error: vllm_mode: {self._told(f'the vLLM server ended with status {status}')}"
            if not nodes.told_by_launcher():
                self.say(line)
            print(line, file=sys.stderr, flush=True)
            nodes.note(UserError(line.removeprefix("error: ")))
            os._exit(2)

    def _told(self, what: str) -> str:
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self.begins, size - TAIL))
            return f"{what}: {reason(file.read().decode(errors='replace'))}; see {self.log}"


def reason(log: str) -> str:
    """Return the first error in a server's log, which caused the others; without errors, the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    error = next(filter(None, map(_error, lines)), None)
    return (error or (lines or ["its log is empty"])[-1])[:LONGEST]


def _error(line: str) -> str | None:
    if match := ERROR.search(line):
        return match[0]
    return line if "out of memory" in line.lower() else None


def _healthy(host: str, port: int) -> bool:
    """Return whether a server says that it can serve; proxies are bypassed."""
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        answer.read()  # read to its end: a server whose answer is cut off logs an error of its own
        return answer.status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
