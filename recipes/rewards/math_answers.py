"""Whether two mathematical answers are equal, decided by math-verify in a process of its own.

An answer written by a model can keep a computer algebra system busy forever (`9^{9^{9^9}}`), in C code that
no signal interrupts. So the comparison runs in a child process of limited memory, which is killed when it
takes too long. Both answers are read as LaTeX only, because math-verify's parser of plain expressions
evaluates Python.
"""

import atexit
import json
import logging
import resource
import selectors
import subprocess
import sys

LONGEST = 500  # characters of an answer; a longer one is wrong
MEMORY = 4 << 30  # bytes of address space of the child


def boxed(text: str) -> str | None:
    r"""The content of the last `\boxed{…}`; None if it is not closed. Linear in the text's length."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth = 0
    start += len("\\boxed{")
    for i in range(start, min(len(text), start + LONGEST + 1)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth < 0:
                return text[start:i]
    return None


class Comparer:
    """`comparer(gold, answer)` is True where math-verify finds them equal within the limit; it never raises.

    The child process starts with the first call that needs it (about 2 s) and ends with this process.
    """

    def __init__(self, limit: float = 5.0) -> None:
        self.limit = limit  # seconds for one comparison
        self.child: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def __call__(self, gold: str, answer: str) -> bool:
        gold, answer = gold.strip(), answer.strip()
        if not gold or not answer or max(len(gold), len(answer)) > LONGEST:
            return False
        return gold == answer or self._ask(gold, answer)

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None

    def _ask(self, gold: str, answer: str) -> bool:
        if self.child is None:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "recipes.rewards.math_answers"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self._reply(60.0)  # its "ready": the limit is for the comparison, not for the child's imports
        if self.child is None or self.child.stdin is None:
            return False
        try:
            self.child.stdin.write(json.dumps([gold, answer]).encode() + b"\n")
            self.child.stdin.flush()
        except OSError:
            self.close()
            return False
        return self._reply(self.limit) == b"true\n"

    def _reply(self, seconds: float) -> bytes:
        """The child's next line; empty, and the child gone, when it has died or takes longer."""
        if self.child is None or self.child.stdout is None:
            return b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            line = self.child.stdout.readline() if selector.select(seconds) else b""
        if not line:
            self.close()
        return line


def serve() -> None:
    """The child: for each line `[gold, answer]` on stdin, `true` or `false` on stdout."""
    # imported here: it takes two seconds, and only the child needs it
    from math_verify import LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)  # math-verify logs each answer it cannot read
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    def read(answer: str) -> list:
        return parse(f"\\boxed{{{answer}}}", [LatexExtractionConfig()], parsing_timeout=2)

    print("ready", flush=True)
    for line in sys.stdin:
        gold, answer = json.loads(line)
        try:
            equal = verify(read(gold), read(answer), timeout_seconds=2)
        except Exception:
            equal = False
        print(json.dumps(bool(equal)), flush=True)


if __name__ == "__main__":
    serve()
