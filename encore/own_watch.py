"""A watcher that ends a process if a user's code in it cannot be interrupted.

It is started by the process PID, as `python -I -S …/own_watch.py PID`. Python handles signals only between
two of its instructions, so a signal interrupts neither `sum(range(10**15))` nor an endless loop in a library.
A loop around a bare `except:` goes on after a signal. The watcher is notified of each call before and after
it. If a call takes too long, the watcher prints an error line, and ends the process by a signal.
"""

import os
import select
import signal
import sys
import time

LOOK = 5.0  # seconds between two checks that the process still exists
END = signal.SIGVTALRM  # a signal that nothing else sends or handles


def _patience(limit: float) -> float:
    """Return the seconds after which the watcher ends a call that may take `limit` seconds.

    They are more than `limit`, because the process first interrupts the call itself.
    """
    return 1.1 * limit + 1.0


def begun(name: str, limit: float) -> bytes:
    """Return the line that notifies the watcher that a call of `name` begins; `DONE` says that it is done."""
    return f"{limit:g} {name}\n".encode()


DONE = b"\n"


def main(process: int) -> int:
    """Watch the process with id `process` until it ends, and end it if a call takes too long.

    Returns the exit status, 0.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # in a terminal the signal reaches the process as well
    told, name, limit, deadline = b"", "", 0.0, float("inf")
    while os.getppid() == process:
        wait = min(LOOK, max(0.0, deadline - time.monotonic()))
        # checked first, because both processes may have been stopped for long
        if select.select([0], [], [], wait)[0]:
            read = os.read(0, 1 << 16)
            if not read:
                break
            *lines, told = (told + read).split(b"\n")
            if lines:  # only the newest line matters
                said, _, name = lines[-1].decode().partition(" ")
                limit = float(said or "inf")
                deadline = time.monotonic() + _patience(limit)
        elif time.monotonic() > deadline:
            line = f"error: {name}: not done after {limit:g} seconds of one call, nor to be interrupted"
            # a progress bar may have left its line open
            print(f"\n{line}; it must be faster", file=sys.stderr, flush=True)
            os.kill(process, END)
            break
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
