"""SHA-256 digests of files, and the two notes that a job leaves beside its result: the list and the record.

The list has the digests of the result's files, in the form that `sha256sum -c` reads: `metrics.sha256` of a
stage, `<checkpoint>.sha256` of an evaluation, `table.sha256` of an analysis, `report.sha256` of a page. Logs
are left out. The record, `metrics.lineage` and so on, says what the result was made from. It is written after
the list, so if there is a record the list is complete.

This file imports the standard library alone: the last command of a job runs it without any package.
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

WHOLE = ("metrics.json", "table.csv")  # results that vouch for all files of their folder
NOT_LISTED = (".log", ".lineage", ".sha256", ".stale", ".aside")
LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def of_file(file: Path) -> str:
    """Return the SHA-256 of a file's content, 64 hex digits."""
    with Path(file).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def listing(result: str | Path) -> Path:
    """Return the path of a result's list of digests."""
    return Path(result).with_suffix(".sha256")


def record(result: str | Path) -> Path:
    """Return the path of a result's record, which says what the result was made from."""
    return Path(result).with_suffix(".lineage")


def files_of(result: Path) -> list[Path]:
    """Return the files that belong to a result, without hidden files and files that were moved aside."""
    folder = result.parent
    whole = result.name in WHOLE and folder.name != "evals"
    paths = folder.rglob("*") if whole else folder.glob(f"{result.stem}.*")
    files = (path for path in paths if path.is_file())
    return sorted(file for file in files if not any(map(_is_left_out, file.relative_to(folder).parts)))


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name.endswith(NOT_LISTED)


def note(result: Path, digest: Callable[[Path], str] = of_file) -> None:
    """Write a result's list: the digests of its files as they are now."""
    names = [(digest(file), file.relative_to(result.parent).as_posix()) for file in files_of(result)]
    write(listing(result), text_of(names))


def listed(result: Path) -> dict[Path, str] | None:
    """Return the files that a result's list names, each with its digest; None if there is no list.

    Raises ValueError if the list cannot be read, or if it is not the list of this result.
    """
    try:
        text = listing(result).read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(error) from None
    files = {result.parent / name: digest for name, digest in parse(text).items()}
    outside = any(".." in file.parts or result.parent not in file.parents for file in files)
    if result not in files or outside:
        raise ValueError(f"{listing(result)}: not the list of {result}")
    return files


def text_of(names: Iterable[tuple[str, str]]) -> str:
    """Return the text of a list made of these pairs (digest, name)."""
    return "".join(f"{digest}  {name}\n" for digest, name in names)


def parse(text: str) -> dict[str, str]:
    """Return name -> digest from the text of a list. Raises ValueError if the text is not exactly a list."""
    lines = [LINE.fullmatch(line) for line in text.splitlines()]
    names = {line[2]: line[1] for line in lines if line}
    if text != text_of((digest, name) for name, digest in names.items()):
        raise ValueError("no list of digests")
    return names


def write(file: Path, text: str) -> None:
    """Write a file completely or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)
