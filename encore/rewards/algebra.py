r"""Whether two expressions are equal by computer algebra, in a process of its own with limits.

An answer written by a model can make a computer algebra system work forever (`9^{9^{9^9}}`), in C code that
no signal handler interrupts. So a worker does the algebra, with limits of its memory and of its CPU time. The
limit is not of the clock, by which pebble's pools would stop it: a busy machine changes no verdict. A server
has loaded what workers need, which takes 2 s, and forks another worker where one has died over a pair.
"""

import atexit
import json
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Literal, NamedTuple

MEMORY = 4 << 30  # bytes of address space of a worker
REMEMBERED = 4096  # pairs
# of two expressions; unread: one could not be read; unfinished: not compared within the limits
Outcome = Literal["equal", "different", "unread", "unfinished"]


class Reply(NamedTuple):
    outcome: Outcome
    seconds: float  # of CPU that it took; the limit, where it was not finished


class Algebra:
    """`algebra(one, other, seconds)`: the reply for two expressions, within so much CPU time. Never raises.

    The server starts with the first pair and ends with this process. The last REMEMBERED pairs are not
    compared again, unless one was not finished and now has more time.
    """

    def __init__(self) -> None:
        self.server: subprocess.Popen[bytes] | None = None
        self.replies: dict[tuple[str, str], Reply] = {}
        atexit.register(self.close)

    def __call__(self, one: str, other: str, seconds: float) -> Reply:
        reply = self.replies.get((one, other))
        if reply and (reply.outcome != "unfinished" or reply.seconds >= seconds):
            return Reply(reply.outcome, 0.0)
        line = self._exchange(json.dumps([one, other, seconds]))
        if not line:  # the server died, of something else than the pair
            return Reply("unfinished", seconds)
        reply = Reply(*json.loads(line))
        if reply.outcome == "unfinished":
            reply = reply._replace(seconds=seconds)
        self.replies.pop((one, other), None)
        if len(self.replies) >= REMEMBERED:
            del self.replies[next(iter(self.replies))]
        self.replies[one, other] = reply
        return reply

    def close(self) -> None:
        """End the server and its worker."""
        if self.server is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.server.pid, signal.SIGKILL)
            self.server.communicate()
            self.server = None

    def _exchange(self, request: str) -> bytes:
        """The server's next line; empty, and the server gone, if it has died."""
        if self.server is not None and self.server.poll() is not None:
            self.close()  # it died between two pairs
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "encore.rewards.algebra"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # so that the worker ends with it
            )
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        try:
            self.server.stdin.write(request.encode() + b"\n")
            self.server.stdin.flush()
            line = self.server.stdout.readline()
        except OSError:
            line = b""
        if not line:
            self.close()
        return line


def _serve() -> None:
    """The server: a worker after another, until one has come to the end of stdin."""
    # only the server needs computer algebra, which takes seconds to import
    import math_verify  # noqa: F401

    logging.disable(logging.CRITICAL)  # math-verify logs each answer it cannot read
    _same(_read("\\frac{1}{2}"), _read("0.5"))  # what is loaded at the first use must not count
    while True:
        worker = os.fork()
        if not worker:
            _work()
        if os.waitpid(worker, 0)[1] == 0:
            return
        print(json.dumps(["unfinished", 0.0]), flush=True)


def _work() -> None:
    """The worker: for each line `[one, other, seconds]` on stdin a reply on stdout; then it exits."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        one, other, seconds = json.loads(line)
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)  # kills this process
        try:
            outcome = _compare(one, other)
        except MemoryError:
            os._exit(1)
        except Exception:
            outcome = "unread"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([outcome, time.process_time() - start]), flush=True)
    os._exit(0)


def _compare(one: str, other: str) -> Outcome:
    first, second = _read(one), _read(other)
    if first is None or second is None:
        return "unread"
    return "equal" if _same(first, second) else "different"


def _read(text: str) -> Any:
    """What math-verify reads; None of what it cannot. As LaTeX only: its reader of plain expressions
    evaluates Python."""
    # only the server and its workers need it
    from math_verify import LatexExtractionConfig, parse

    found = parse(f"\\boxed{{{text}}}", [LatexExtractionConfig()], parsing_timeout=None)
    return found[0] if len(found) == 2 and not isinstance(found[0], str) else None


def _same(one: Any, other: Any) -> bool:
    """Whether two expressions or matrices are equal exactly, decimals read as the fractions they are."""
    # only the server and its workers need it
    from sympy import Basic, Float, I, MatrixBase, Rational, Symbol, nan, simplify, zoo

    if isinstance(one, MatrixBase) and isinstance(other, MatrixBase):
        return one.shape == other.shape and all(map(_same, one, other))
    if not isinstance(one, Basic) or not isinstance(other, Basic):
        return False
    if one.has(zoo, nan) or other.has(zoo, nan):
        return False  # what has no value is equal to its own text alone
    if one == other:
        return True

    def exact(expression: Any) -> Any:
        expression = expression.replace(lambda e: isinstance(e, Float), lambda e: Rational(str(e)))
        return expression.replace(lambda e: isinstance(e, Symbol) and e.name == "i", lambda e: I)

    try:
        first, second = exact(one), exact(other)
        return bool(first == second or simplify(first - second) == 0)
    except TypeError:
        return False  # a set, a relation or a truth value


if __name__ == "__main__":
    _serve()
