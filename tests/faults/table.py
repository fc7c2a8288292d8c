"""results/published/faults.csv: each fault that a test injects, where, what happens, and the test.

    python tests/faults/table.py      (part of what `snakemake --cores faults` runs)

A row is what a test says of itself: `@pytest.mark.fault(fault, where, what happens)`, one or several.
"""

import ast
import csv
import io
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "results/published/faults.csv"
COLUMNS = ("fault", "where", "what_happens", "test")
MARK = "pytest.mark.fault"


def rows() -> list[tuple[str, ...]]:
    """A row for each fault of each test, by fault."""
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if f"@{MARK}(" in path.read_text()]
    return sorted(row for path in files for row in _of(path))


def _of(path: Path) -> Iterator[tuple[str, ...]]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for mark in getattr(node, "decorator_list", []):
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == MARK:
                test = f"{path.relative_to(ROOT).as_posix()}::{node.name}"
                said = [ast.literal_eval(argument) for argument in mark.args]
                assert len(said) == 3, f"{test}: expected a fault, where, and what happens"
                yield (*said, test)


def text() -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows())
    return out.getvalue()


if __name__ == "__main__":
    TABLE.write_text(text(), encoding="utf-8")
