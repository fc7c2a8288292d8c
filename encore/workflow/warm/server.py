"""The server of warm jobs: it imports what jobs import, and forks a job for each request of a client.

It imports nothing heavy before the first request. Its socket has no file, and it starts no thread. The kernel
ends it with the workflow, and the jobs with it. It refuses a job that could differ from a plain process,
because of another environment or folder, or because the code was edited.

Python's multiprocessing.forkserver would not do, because it serves only the process that started it: its jobs
cannot get the streams, environment, process group and arguments of another process, and they live on when
that process dies.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import select
import selectors
import signal
import socket
import struct
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.errors import first_line
from encore.runtime.environment import few_collections, quiet_environment
from encore.runtime.gpus import VISIBLE
from encore.runtime.guard import end_with
from encore.workflow.warm import serving
from encore.workflow.warm.client import AGAIN, LENGTH, REFUSED, STARTED, STATUS, owner, receive

# module of a command -> the module with its functions `main`, and `load`, which imports what `main` will need
COMMANDS = {"encore.stages": "encore.stages.__main__", "evals.evaluate": "evals.evaluate"}
SHELLS = {"_", "SHLVL", "OLDPWD"}  # variables that a shell changes all the time, and that no library reads
# variables set during the imports: a fork copies neither pyarrow's allocator threads nor a GPU driver's state
IMPORTING = {"JE_ARROW_MALLOC_CONF": "background_thread:false", VISIBLE: ""}
PATIENCE = 5.0  # seconds that a client may take to send its request


@dataclass(frozen=True)
class Request:
    """A job that a client asks for."""

    client: int  # process id of the client
    streams: list[int]  # the client's stdin, stdout and stderr
    module: str
    arguments: list[str]
    umask: int
    folder: str
    environment: dict[str, str]
    deaf: bool  # whether the client ignores Ctrl-C


@dataclass(frozen=True)
class Job:
    process: int  # process id
    watch: int  # file descriptor that becomes readable when the process ends
    client: socket.socket


@dataclass(frozen=True)
class Loaded:
    """The environment at the imports, and the times at which the files of our code were last changed."""

    environment: dict[str, str]
    files: dict[Path, int]  # file -> mtime in nanoseconds


# -- in the server's process ---------------------------------------------------------------------------------


def _serve(listener: socket.socket, again: list[str]) -> Request:
    """Fork a process for each request, which returns the request; the server itself never returns.

    If the first request has another environment than this process, this process becomes the command `again`
    in that environment. Raises the errors of the imports.
    """
    loaded: Loaded | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not listener:
                    _attend(key.data, key.fileobj, selector)
                    continue
                connection = listener.accept()[0]
                request = _read_request(connection)
                if request and not loaded:
                    if again and _settings(request.environment) != _settings(os.environ):
                        _answer(connection, AGAIN, request.streams)
                        os.execve(again[0], again, request.environment)
                    loaded = _load(request)
                gone = select.select([connection], [], [], 0)[
                    0
                ]  # a client sends nothing more before it has an answer
                fits = request and loaded and not gone and _fits(request, loaded)
                process = _forked() if fits else None
                if request and process == 0:
                    for job in {other.data for other in selector.get_map().values() if other.data}:
                        os.close(job.watch)
                        job.client.close()
                    connection.close()
                    return request
                if request and process:
                    with contextlib.suppress(OSError):  # the job or its client has ended already
                        os.setpgid(process, os.getpgid(request.client))
                    job = Job(process, os.pidfd_open(process), connection)
                    selector.register(job.watch, selectors.EVENT_READ, job)
                    selector.register(job.client, selectors.EVENT_READ, job)
                _answer(connection, STARTED if process else REFUSED, request.streams if request else ())
                if not process:
                    connection.close()


def _forked() -> int | None:
    """Fork as os.fork does; return None if the system allows no further process."""
    try:
        return os.fork()
    except OSError:
        return None


def _read_request(connection: socket.socket) -> Request | None:
    """Return the request of a client; None if the client is another user's or the request incomplete."""
    streams: list[int] = []
    try:
        connection.settimeout(PATIENCE)
        client, user = owner(connection)
        if user != os.getuid():
            return None
        size, streams, _, _ = socket.recv_fds(connection, LENGTH.size, 3)
        data = json.loads(receive(connection, *LENGTH.unpack(size)))
        stdin, stdout, stderr = streams
        return Request(client, [stdin, stdout, stderr], **data)
    except (OSError, EOFError, ValueError, TypeError, struct.error):
        for stream in streams:
            os.close(stream)
        return None


def _answer(connection: socket.socket, word: bytes, done_with: Sequence[int] = ()) -> None:
    """Send `word` to the client, and close its streams `done_with`."""
    with contextlib.suppress(OSError):  # the client has ended
        connection.sendall(word)
    for stream in done_with:
        os.close(stream)


def _attend(job: Job, ready: Any, selector: selectors.BaseSelector) -> None:
    """Report the end of a job to its client, or end the job if its client has ended or is interrupted."""
    if ready == job.watch:
        status = os.waitpid(job.process, 0)[1]
        selector.unregister(job.watch)
        os.close(job.watch)
        if job.client.fileno() >= 0:
            selector.unregister(job.client)
            _answer(job.client, STATUS.pack(status))
            job.client.close()
    elif job.client.fileno() >= 0:  # otherwise the job's end was noticed a moment ago
        said = b""
        with contextlib.suppress(OSError):
            said = job.client.recv(1)
        os.kill(job.process, signal.SIGINT if said else signal.SIGKILL)
        if not said:
            selector.unregister(job.client)
            job.client.close()


def _settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that a library may read."""
    return {name: value for name, value in environment.items() if name not in SHELLS}


def _load(request: Request) -> Loaded:
    """Import everything that the commands need; what imports print goes to the first job's streams.

    Raises the errors of the imports, and RuntimeError if they leave threads.
    """
    environment = dict(os.environ)
    streams = [os.dup(stream) for stream in (1, 2)]
    os.dup2(request.streams[1], 1)
    os.dup2(request.streams[2], 2)
    try:
        few_collections()
        quiet_environment(names_hub=False)
        os.environ.update(IMPORTING)
        for module in COMMANDS.values():
            importlib.import_module(module).load()
    finally:
        for name in IMPORTING:
            os.environ.pop(name, None)
            os.environ.update({name: environment[name]} if name in environment else {})
        sys.stdout.flush()
        for stream, saved in enumerate(streams, 1):
            os.dup2(saved, stream)
            os.close(saved)
    if threads := len(os.listdir("/proc/self/task")) - 1:
        raise RuntimeError(f"the imports have started threads: {threads}")
    gc.freeze()  # a garbage collection in a job would write to, and so copy, all the memory that it shares
    houses = {module.partition(".")[0] for module in COMMANDS}
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in houses]
    files = [Path(module.__file__) for module in modules if module.__file__]
    return Loaded(environment, {file: file.stat().st_mtime_ns for file in files})


def _fits(request: Request, loaded: Loaded) -> bool:
    """Return whether a forked job would do the same as a plain process.

    Its environment, folder and code must be as at the imports, and its client in this server's session.
    """
    same = _settings(request.environment) == _settings(loaded.environment)
    if not same or request.folder != os.getcwd() or request.module not in COMMANDS:
        return False
    try:
        if os.getsid(request.client) != os.getsid(0):
            return False
        return all(file.stat().st_mtime_ns == changed for file, changed in loaded.files.items())
    except OSError:
        return False


# -- in a job's process --------------------------------------------------------------------------------------


def _run(request: Request) -> int:
    """Run the requested command in this process. Returns the exit status, or ends the process with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN if request.deaf else signal.default_int_handler)
    os.umask(request.umask)
    for name in SHELLS:
        os.environ.pop(name, None)
    os.environ.update({name: request.environment[name] for name in SHELLS & request.environment.keys()})
    for stream, stream_copy in enumerate(request.streams):
        os.dup2(stream_copy, stream)
        os.close(stream_copy)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=os.isatty(1))
    command = sys.modules[COMMANDS[request.module]]
    sys.argv = [command.__file__ or "", *request.arguments]
    status: int = command.main()
    if all(thread.daemon for thread in threading.enumerate()[1:]):
        # Ends without freeing the imported objects one by one, which would take 0.4 s.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _main(parent: int, listener: int, is_again: bool) -> int:
    end_with(parent)
    # Ctrl-C goes to the whole process group; the jobs handle it themselves
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = os.getpid()
    try:
        with socket.socket(fileno=listener) as listening:
            os.set_inheritable(listener, not is_again)
            again = [] if is_again else [*serving(parent, listening), "again"]
            request = _serve(listening, again)
    except (Exception, SystemExit) as error:
        print(f"warning: every job imports for itself: {first_line(error)}", file=sys.stderr)
        return 1
    end_with(server)
    return _run(request)


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), int(sys.argv[2]), "again" in sys.argv[3:]))
