"""The time that a run will still take, from the plan of its jobs and the times of finished jobs."""

from collections.abc import Mapping


def seconds_left(
    planned: Mapping[str, float], done: Mapping[str, float], running: Mapping[str, float], elapsed: float
) -> float | None:
    """Return the seconds of wall time until all planned jobs are done; None if no planned job is done yet.

    All values are seconds, by the name of the job: `planned` how long it should take, `done` how long it
    took, `running` for how long it has been running. `elapsed`: seconds since the run began. The estimate
    assumes that further jobs take as much longer than planned as those done, with as many jobs at a time.
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
    """Return a phrase for a number of seconds, such as `about 20 minutes left`."""
    if seconds < 90:
        return "about a minute left"
    hours = seconds / 3600
    return f"about {seconds / 60:.0f} minutes left" if hours < 2 else f"about {hours:.1f} hours left"
