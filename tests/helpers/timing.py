"""The time that work takes, on machines that do other work as well."""

import time
from collections.abc import Callable

TRIES = 3


def takes_less(
    seconds: float, work: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> bool:
    """Return whether at least one of `TRIES` repetitions of `work` takes less than `seconds` by the clock."""
    for _ in range(TRIES):
        start = clock()
        work()
        if clock() - start < seconds:
            return True
    return False
