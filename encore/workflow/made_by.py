"""Results that are kept although the code or a library has changed since: said at the start, with the choice.

The lineage of a result has what its recipe says, and not the code: a reworded comment would train everything
anew. So who has changed more than that is told, and decides.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from encore.runtime.provenance import versions

ROOT = Path(__file__).parents[2]
# the code whose change may change a trained model
TRAINS = ("worlds", "objectives", "data", "models", "rewards", "labels", "sampling", "learning", "stages")
CHOICE = "kept; to make them again: the same command with --forcerun train"


def differences(
    stages: Iterable[Path], installed: Mapping[str, str] | None = None, root: Path = ROOT
) -> list[str]:
    """A line for each way in which finished stages, by their metrics.json, were made otherwise than now."""
    records = [found for path in stages if path.exists() and (found := _record(path))]
    return [*_of_libraries(records, installed or versions()), *_of_code(records, root)]


def _record(metrics_json: Path) -> dict[str, Any]:
    """The provenance of a stage; {} where there is none."""
    try:
        found = json.loads(metrics_json.with_name("provenance.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_libraries(records: Sequence[Mapping[str, Any]], installed: Mapping[str, str]) -> list[str]:
    counts: Counter[tuple[str, str]] = Counter()
    for record in records:
        recorded = record.get("versions")
        for name, version in (recorded if isinstance(recorded, dict) else {}).items():
            if name in installed and version != installed[name]:
                counts[name, str(version)] += 1
    return [
        f"warning: {_results(count)} made with {name} {version}, and {installed[name]} is installed; {CHOICE}"
        for (name, version), count in sorted(counts.items())
    ]


def _of_code(records: Sequence[Mapping[str, Any]], root: Path) -> list[str]:
    counts = Counter(record["commit"] for record in records if isinstance(record.get("commit"), str))
    lines = []
    for commit, count in sorted(counts.items()):
        if changed := _changed(commit, root):
            more = f" and {len(changed) - 1} more" if changed[1:] else ""
            since = f"by other code (since commit {commit[:8]}: {changed[0]}{more})"
            lines.append(f"warning: {_results(count)} made {since}; {CHOICE}")
    return lines


def _changed(commit: str, root: Path) -> list[str]:
    """Files of the code that trains, unlike those of a commit; none outside a checkout that has it."""
    asked = ["git", "diff", "--name-only", commit, "--", *(f"encore/{folder}/*.py" for folder in TRAINS)]
    try:
        done = subprocess.run(asked, cwd=root, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.split()


def _results(count: int) -> str:
    return "1 stage was" if count == 1 else f"{count} stages were"
