"""The digests beside each result: `python -I -S …/sums.py results/…/metrics.json LINEAGE`, when its job ends.

`metrics.sha256` lists the files of a stage, `<checkpoint>.sha256` those of an evaluation, `table.sha256`
those of an analysis, `report.sha256` the page: as `sha256sum -c` reads them in their folder. Logs are left
out. The record of what the result was made from is written after it, so where that is, the list is whole.

A file that is not as listed has its job done again. To keep a result that you have changed yourself, delete
the list: a result without one, as those of before there were lists, is taken as it is and gets one.

It runs after every job, so it imports little.
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

WHOLE = ("metrics.json", "table.csv")  # they stand for all that is in their folder
NOT_LISTED = (".log", ".lineage", ".sha256", ".stale", ".aside")
LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def path(result: str | Path) -> Path:
    """Where the digests of a result's files are listed."""
    return Path(result).with_suffix(".sha256")


def record(result: str | Path) -> Path:
    """Where the rule notes what it has made the result from: a node's lineage, or the hash of a report's."""
    return Path(result).with_suffix(".lineage")


def files_of(result: Path) -> list[Path]:
    """The files for which `result` stands; not what was moved aside, nor what is hidden."""
    folder = result.parent
    if result.name in WHOLE and folder.name != "evals":
        found = [path for path in folder.rglob("*") if path.is_file()]
    else:
        found = [path for path in folder.glob(f"{result.stem}.*") if path.is_file()]
    return sorted(path for path in found if not any(map(_not_made, path.relative_to(folder).parts)))


def _not_made(name: str) -> bool:
    return name.startswith(".") or name.endswith(NOT_LISTED)


def digest(file: Path) -> str:
    """The SHA-256 of a file's content, 64 hex digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def note(result: Path, of_file: Callable[[Path], str] = digest) -> None:
    """List the digests of the files as they are now."""
    lines = [f"{of_file(file)}  {file.relative_to(result.parent).as_posix()}\n" for file in files_of(result)]
    _write(path(result), "".join(lines))


def listed(result: Path) -> dict[Path, str] | None:
    """File -> its digest when the job ended; None without a list. Raises ValueError on another text."""
    try:
        text = path(result).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(error) from None
    lines = [LINE.fullmatch(line) for line in text.splitlines()]
    found = {result.parent / line[2]: line[1] for line in lines if line}
    strange = any(".." in file.parts or result.parent not in file.parents for file in found)
    if len(found) < len(lines) or result not in found or strange:
        raise ValueError(f"{path(result)}: no list of digests")
    return found


def changed(result: Path, of_file: Callable[[Path], str] = digest) -> str | None:
    """Which file of a result is not as its job left it; None where all are, or where nothing is listed."""
    try:
        expected = listed(result)
    except ValueError:
        return f"its {path(result).name} is not readable"
    for file, then in (expected or {}).items():
        name = file.relative_to(result.parent)
        if not file.is_file():
            return f"its {name} is missing"
        if of_file(file) != then:
            return f"its {name} has changed"
    return None


def _write(file: Path, text: str) -> None:
    """Whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)


def main(arguments: list[str]) -> int:
    """`arguments`: the result, and what it was made from where that is noted."""
    result, *made_from = Path(arguments[0]), *arguments[1:]
    try:
        note(result)
        for text in made_from:
            _write(record(result), f"{text}\n")
    except OSError as error:
        print(f"error: {error.filename or result}: {os.strerror(error.errno or 0)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
