"""The time that a run will still take, from the plan of its jobs and the times of finished jobs."""

from collections.abc import Mapping


def seconds_left(
    planned: Mapping[str, float], done: Mapping[str, float], running: Mapping[str, float], elapsed: float
) -> float | None:
    """Return seconds on the clock until all planned jobs are done; None if nothing says how long they take.

    All values are seconds: `planned` of each job by its name, `done` and `running` how long these jobs took
    or have been running, `elapsed` since the run began. Further jobs are expected to keep the present ratio
    to their plan, and the present number at a time.
    """
    known = {name: took for name, took in done.items() if name in planned}
    rest = {name: seconds for name, seconds in planned.items() if name not in done}
    if not known or not rest or elapsed <= 0:
        return None
    factor = sum(known.values()) / max(sum(planned[name] for name in known), 1e-9)
    left = sum(max(factor * seconds - running.get(name, 0.0), 0.0) for name, seconds in rest.items())
    at_a_time = max((sum(done.values()) + sum(running.values())) / elapsed, 1.0)
    return left / min(at_a_time, len(rest))


def said(seconds: float) -> str:
    """Return seconds in words: `about 20 minutes left`."""
    if seconds < 90:
        return "about a minute left"
    hours = seconds / 3600
    return f"about {seconds / 60:.0f} minutes left" if hours < 2 else f"about {hours:.1f} hours left"
