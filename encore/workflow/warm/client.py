"""The client `python -I -S …/client.py encore.stages …`, which does `python -m encore.stages …` sooner.

If the server (server.py) runs, it forks the job, with the arguments, environment, umask and standard streams
of this process, which waits for the job and ends with its status. Otherwise, as on another machine, this
process becomes the plain command. It also does so if the server ends before the job, which then continues
from its checkpoint. Python starts this file in 0.03 s, because the file imports little.
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import struct
import sys

# the server's name among the abstract sockets; "off" if every job is a plain process
VARIABLE = "ENCORE_WARM"
STARTED, REFUSED, AGAIN = b"+", b"-", b"~"  # the server's answers to a request; AGAIN: ask again
INTERRUPT = b"i"  # sent by the client when it is interrupted
STATUS = struct.Struct("i")  # status of a job that has ended, as waitpid returns it
LENGTH = struct.Struct("q")  # length of a request in bytes, after which its JSON follows
# A job that names something of the Hub must keep the network, which the server's libraries have turned off.
HUB = ('"hub"', '"lm_eval"')


def may_be_warm(arguments: list[str], environment: dict[str, str]) -> bool:
    """Return whether a job may be forked: it needs neither network nor GPU, and starts no threads."""
    single = all(environment.get(name) == "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"))
    without_gpu = ("--gpus", "0") in itertools.pairwise(arguments)
    return single and without_gpu and not any(key in text for text in arguments for key in HUB)


def owner(connection: socket.socket) -> tuple[int, int]:
    """Return the ids of the process and of the user at the other end of the connection."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process, user, _ = struct.unpack("3i", credentials)
    return process, user


def receive(connection: socket.socket, size: int) -> bytes:
    """Return `size` bytes. Raises EOFError if the other end closes before they have come."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _asked(name: str, module: str, arguments: list[str]) -> int | None:
    """Ask the server `name` for a job, and return the job's status; None if the server does not run it."""
    mask = os.umask(0)
    os.umask(mask)
    request = {"module": module, "arguments": arguments, "umask": mask}
    request |= {"folder": os.getcwd(), "environment": dict(os.environ)}
    request |= {"deaf": _deaf()}
    data = json.dumps(request).encode()
    while True:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(f"\0{name}")
                if owner(connection)[1] != os.getuid():
                    return None
                socket.send_fds(connection, [LENGTH.pack(len(data))], [0, 1, 2])
                connection.sendall(data)
                answer = receive(connection, 1)
            except (OSError, EOFError):
                return None
            if answer == STARTED:
                return _wait(connection)
            if answer != AGAIN:
                return None


def _wait(connection: socket.socket) -> int | None:
    """Wait for the job behind `connection`, and return its status; None if the server ends before it."""

    def pass_on(*_: object) -> None:
        with contextlib.suppress(OSError):  # the job may have ended just before
            connection.send(INTERRUPT)

    before = signal.getsignal(signal.SIGINT)
    if not _deaf():
        signal.signal(signal.SIGINT, pass_on)
    try:
        (status,) = STATUS.unpack(receive(connection, STATUS.size))
    except (OSError, EOFError):
        print("the job's warm process is gone; starting anew as a plain one", file=sys.stderr, flush=True)
        return None
    finally:
        signal.signal(signal.SIGINT, before)
    return status


def _deaf() -> bool:
    """Return whether this process was started to ignore Ctrl-C, as by a shell with `&`."""
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def _end_as(status: int) -> None:
    """End this process as the job ended: with the same exit status, or by the same signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.waitstatus_to_exitcode(status))


def _main() -> None:
    module, *arguments = sys.argv[1:]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a process that only waits should print no traceback
    name = os.environ.get(VARIABLE, "off")
    if name != "off" and may_be_warm(arguments, dict(os.environ)):
        status = _asked(name, module, arguments)
        if status is not None:
            _end_as(status)
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


if __name__ == "__main__":
    _main()
