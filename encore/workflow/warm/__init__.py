"""Warm jobs, which save the time of imports: they are forked from a process that has all imports done.

The workflow starts the server (server.py), and the command of a job (`command`) starts a client (client.py)
that asks the server for the job.
"""

import atexit
import os
import secrets
import shlex
import socket
import subprocess
import sys

from encore.workflow.warm import client


def command(module: str) -> str:
    """Return a command like `python -m MODULE`, which starts sooner if the server of warm jobs runs."""
    return f"python -I -S {shlex.quote(client.__file__)} {module}"


def start() -> None:
    """Start the server of warm jobs, unless the environment variable ENCORE_WARM is "off".

    The variable is then set to the server's name, by which jobs find it.
    """
    if sys.platform != "linux" or os.environ.get(client.VARIABLE) == "off":
        return
    name = f"encore-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX) as listener:
        # bound before the server serves, so that a job that comes early waits in the queue
        listener.bind(f"\0{name}")
        listener.listen(64)
        words = serving(os.getpid(), listener)
        server = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[listener.fileno()])
    os.environ[client.VARIABLE] = name
    atexit.register(_stop, server)


def serving(parent: int, listener: socket.socket) -> list[str]:
    """Return the command of a server that belongs to process `parent` and listens at `listener`."""
    return [sys.executable, "-m", "encore.workflow.warm.server", str(parent), str(listener.fileno())]


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server."""
    server.kill()
    server.wait()
