"""The process inside the sandbox, which runs one program after another, each in its own child process.

Its source is given to a bare Python with -c, so it imports the standard library alone. It reads and writes
frames: 4 bytes with the length of a JSON text, then this text. The first frame has the settings, with the
libraries that programs may use; the answer is "ready". Each further frame is a job, {program, calls, wall},
answered by {ended, lines, dirty}. `lines` is the output of the child, a line of JSON for each call, which is
not parsed here. `dirty` says that the program left a file, so that this sandbox must not be used again.

The child shuts itself in before it runs the program: it closes all descriptors but its pipe, and sets
resource limits and a seccomp filter. Under the filter it can neither start, signal nor trace a process nor
open a socket.
"""

# ruff: noqa: F401 - the most common imports of programs are loaded once, and each child inherits them by fork
import base64
import bisect
import collections
import contextlib
import ctypes
import fractions
import functools
import gc
import heapq
import importlib
import io
import itertools
import json
import math
import os
import random
import re
import resource
import select
import signal
import statistics
import string
import struct
import sys
import time
import typing

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def _receive(source):
    """Return the content of the next frame; None at the end of the input."""
    head = source.read(4)
    if len(head) < 4:
        return None
    return json.loads(source.read(struct.unpack("<I", head)[0]))


def _send(sink, value):
    body = json.dumps(value).encode()
    sink.write(struct.pack("<I", len(body)) + body)
    sink.flush()


def _encoded(value):
    """Return a value as JSON data that says which built-in type it has. Raises TypeError for other types."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is list:
        return [_encoded(item) for item in value]
    if kind is float:
        return {"float": repr(value)}
    if kind is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind in (tuple, set, frozenset):
        return {"tuple" if kind is tuple else "set": [_encoded(item) for item in value]}
    if kind is dict:
        return {"dict": [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    raise TypeError(kind.__name__)


def _filter(instructions):
    """Return a function that puts its process under the filter; the C library is loaded before that."""
    held = ctypes.create_string_buffer(instructions)
    program = Filter(len(instructions) // 8, ctypes.cast(held, ctypes.c_void_p))
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def put(_held=held):  # kept alive as long as its address is in use
        if prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or prctl(
            PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
        ):
            raise OSError(ctypes.get_errno(), "seccomp")

    return put


def _attempt(call, names):
    """Return a line of JSON: the value of a call, or the class of the error that it raised."""
    try:
        return json.dumps(_encoded(eval(compile(call, "<test>", "eval"), names)))
    except BaseException as error:  # a program may raise anything, even SystemExit
        return json.dumps({"error": type(error).__name__})


def _child(job, pipe, settings, shut):
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.dup2(pipe, 3)
    os.closerange(4, 1024)
    random.seed(0)  # a program that draws random numbers gets the same verdict again
    for name, value in settings["limits"].items():
        # a program that ignores SIGXCPU has one second more; SIGKILL, at the hard limit, would not show that
        # time is up
        highest = value + 1 if name == "RLIMIT_CPU" else value
        resource.setrlimit(getattr(resource, name), (value, highest))
    shut()  # from here on this process belongs to the program
    names = {"__name__": "program", "__builtins__": __builtins__}
    try:
        exec(compile(job["program"], "<program>", "exec", dont_inherit=True), names)
    except BaseException as error:
        os.write(3, json.dumps({"error": type(error).__name__}).encode())
        return
    for call in job["calls"]:
        os.write(3, _attempt(call, names).encode() + b"\n")


def _collect(pipe, wall, most):
    """Return how the program ended (done, time or output), and the output that came through the pipe.

    The pipe is read until it is closed (done), `wall` seconds have passed (time), or more than `most` bytes
    have come (output).
    """
    parts: list[bytes] = []
    end, size = time.monotonic() + wall, 0
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while True:
        left = end - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return "time", b"".join(parts)
        part = os.read(pipe, 65536)
        if not part:
            return "done", b"".join(parts)
        size += len(part)
        if size > most:
            return "output", b""
        parts.append(part)


def _run(job, settings, shut):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            _child(job, write, settings, shut)
        finally:
            os._exit(0)
    os.close(write)
    ended, written = _collect(read, job["wall"], settings["output"])
    for kill in (os.killpg, os.kill):  # the child may have closed its pipe and be running still
        with contextlib.suppress(ProcessLookupError):  # the child ended before it had a group
            kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(read)
    if ended == "done" and os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        ended = signal.Signals(os.WTERMSIG(status)).name
    dirty = os.listdir() != settings["files"]
    return {"ended": ended, "lines": written.decode(errors="replace"), "dirty": dirty}


def _serve(source, sink):
    settings = _receive(source)
    sys.path += settings["folders"]
    with contextlib.redirect_stdout(io.StringIO()):  # stdout is for frames, so other output is caught
        for library in settings["libraries"]:
            importlib.import_module(library)
    settings["files"] = os.listdir()  # files that the libraries have left
    instructions = base64.b64decode(settings["filter"])
    shut = _filter(instructions) if instructions else int
    gc.disable()  # memory that is shared with the children stays shared
    gc.freeze()
    _send(sink, "ready")
    while (job := _receive(source)) is not None:
        _send(sink, _run(job, settings, shut))


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
