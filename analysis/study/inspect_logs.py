"""The results in a log of inspect_ai that was written as JSON: a whole log, or only its header.

Inspect's own format, `.eval`, is a ZIP with a compression that Python reads from version 3.14 on. It is
refused; the error names the command that writes the header as JSON.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from encore.errors import UserError

ZIP = b"PK\x03\x04"  # the beginning of every ZIP
MEANS = ("accuracy", "mean")  # the metrics whose standard error is the score's `stderr`
PLAIN = (None, "mean")  # reducers of a sample's epochs that are not added to the name


class Score(NamedTuple):
    """A metric of an evaluation, named `task/score/metric`, and its standard error; nan if unknown."""

    name: str
    value: float
    error: float


def refuse_zip(path: Path) -> None:
    """Raise UserError for a ZIP, with the command that writes a log of inspect as JSON."""
    command = f"inspect log dump --header-only {path.name} > {path.stem}.json"
    raise UserError(f"{path}: a ZIP; if it is a log of inspect, write it as JSON: {command}")


def is_log(content: Mapping[str, object]) -> bool:
    """Return whether a JSON object is a log of inspect."""
    return isinstance(_object(content, "eval").get("task"), str) and isinstance(content.get("status"), str)


def scores(path: Path, log: Mapping[str, object]) -> Iterator[Score]:
    """Yield the metrics of each score of a log. Raises UserError if the status is not `success`."""
    if log["status"] != "success":
        raise UserError(f"{path}: its status is {str(log['status'])[:40]!r}, not 'success': run it again")
    task = _object(log, "eval").get("task")
    listed = _object(log, "results").get("scores")
    for score in listed if isinstance(listed, list) else []:
        if not isinstance(score, dict):
            continue
        values: dict[str, float] = {
            name: value
            for name, metric in _object(score, "metrics").items()
            if isinstance(metric, dict) and isinstance(value := metric.get("value"), int | float)
        }
        joined = score.get("reducer")
        ending = "" if joined in PLAIN else f",{joined}"
        for name, value in values.items():
            if name != "stderr":
                error = values.get("stderr", math.nan) if name in MEANS else math.nan
                yield Score(f"{task}/{score.get('name')}/{name}{ending}", value, error)


def _object(content: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return the JSON object under a key; {} if there is none."""
    value = content.get(key)
    return value if isinstance(value, dict) else {}
