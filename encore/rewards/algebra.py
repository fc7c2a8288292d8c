r"""Equality of two expressions by computer algebra, in a separate process with limits.

An answer written by a model can make a computer algebra system work forever (`9^{9^{9^9}}`), in C code that
no signal handler interrupts. So a worker process does the algebra, with limits of its memory and of its CPU
time. A limit of wall time, as in pebble's pools, would make verdicts depend on how busy the machine is. A
server process has loaded what workers need, which takes 2 s, and forks another worker when one has died over
a pair.
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

MEMORY = 4 << 30  # bytes of a worker's address space
REMEMBERED = 4096  # number of pairs that are remembered
# result for two expressions; unread: one of them could not be read; unfinished: not compared within the
# limits
Outcome = Literal["equal", "different", "unread", "unfinished"]


class Reply(NamedTuple):
    outcome: Outcome
    seconds: float  # seconds of CPU time used; the limit, if the comparison was not finished


class Algebra:
    """A comparer: `algebra(first, other, seconds)` compares two expressions within this CPU time.

    It never raises. The server starts with the first pair and ends with this process. The last REMEMBERED
    pairs are not compared again, unless a comparison was not finished and now has more time.
    """

    def __init__(self) -> None:
        self.server: subprocess.Popen[bytes] | None = None
        self.replies: dict[tuple[str, str], Reply] = {}
        atexit.register(self.close)

    def __call__(self, first: str, other: str, seconds: float) -> Reply:
        reply = self.replies.get((first, other))
        if reply and (reply.outcome != "unfinished" or reply.seconds >= seconds):
            return Reply(reply.outcome, 0.0)
        line = self._exchange(json.dumps([first, other, seconds]))
        if not line:  # the server died, but not because of this pair
            return Reply("unfinished", seconds)
        reply = Reply(*json.loads(line))
        if reply.outcome == "unfinished":
            reply = reply._replace(seconds=seconds)
        self.replies.pop((first, other), None)
        if len(self.replies) >= REMEMBERED:
            del self.replies[next(iter(self.replies))]
        self.replies[first, other] = reply
        return reply

    def close(self) -> None:
        """End the server and its worker."""
        if self.server is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.server.pid, signal.SIGKILL)
            self.server.communicate()
            self.server = None

    def _exchange(self, request: str) -> bytes:
        """Send `request` to the server and return its reply, a line; b"" if the server has died."""
        if self.server is not None and self.server.poll() is not None:
            self.close()  # the server died between two pairs
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "encore.rewards.algebra"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # makes the worker end with the server
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
    """Run the server: start one worker after another, until a worker has read stdin to its end."""
    # only the server needs computer algebra, which takes seconds to import
    import math_verify  # noqa: F401

    logging.disable(logging.CRITICAL)  # math-verify logs each answer that it cannot read
    _same(
        _parse_expression("\\frac{1}{2}"), _parse_expression("0.5")
    )  # loads the libraries now, so that loading does not count for the first pair
    while True:
        worker = os.fork()
        if not worker:
            _work()
        if os.waitpid(worker, 0)[1] == 0:
            return
        print(json.dumps(["unfinished", 0.0]), flush=True)


def _work() -> None:
    """Run a worker: for each line `[first, other, seconds]` on stdin print a reply; then exit."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        first, other, seconds = json.loads(line)
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds)  # kills this process when its time is up
        try:
            outcome = _compare(first, other)
        except MemoryError:
            os._exit(1)
        except Exception:
            outcome = "unread"
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps([outcome, time.process_time() - start]), flush=True)
    os._exit(0)


def _compare(left: str, other: str) -> Outcome:
    first, second = _parse_expression(left), _parse_expression(other)
    if first is None or second is None:
        return "unread"
    return "equal" if _same(first, second) else "different"


def _parse_expression(text: str) -> Any:
    """Return the expression that math-verify reads, or None.

    It reads LaTeX only, because math-verify's reader of plain expressions evaluates Python.
    """
    # only the server and its workers need it
    from math_verify import LatexExtractionConfig, parse

    expressions = parse(f"\\boxed{{{text}}}", [LatexExtractionConfig()], parsing_timeout=None)
    return expressions[0] if len(expressions) == 2 and not isinstance(expressions[0], str) else None


def _same(left: Any, other: Any) -> bool:
    """Return whether two expressions or matrices are exactly equal; a decimal counts as a fraction."""
    # only the server and its workers need it
    from sympy import Basic, Float, I, MatrixBase, Rational, Symbol, nan, simplify, zoo

    if isinstance(left, MatrixBase) and isinstance(other, MatrixBase):
        return left.shape == other.shape and all(map(_same, left, other))
    if not isinstance(left, Basic) or not isinstance(other, Basic):
        return False
    if left.has(zoo, nan) or other.has(zoo, nan):
        return False  # an expression without a value is equal to its own text alone
    if left == other:
        return True

    def exact(expression: Any) -> Any:
        expression = expression.replace(lambda e: isinstance(e, Float), lambda e: Rational(str(e)))
        return expression.replace(lambda e: isinstance(e, Symbol) and e.name == "i", lambda e: I)

    try:
        first, second = exact(left), exact(other)
        return bool(first == second or simplify(first - second) == 0)
    except TypeError:
        return False  # a set, a relation or a truth value


if __name__ == "__main__":
    _serve()
