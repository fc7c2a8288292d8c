"""The code stays readable, and the records small: what a file, a function, a page and all records may be."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOUSES = ("encore", "evals", "analysis", "snakemake_logger_plugin_encore")
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for house in HOUSES
    for path in sorted((ROOT / house).rglob("*.py"))
}
LONGEST_FILE = 300  # lines
LONGEST_FUNCTION = 60  # lines, with its docstring
UNTYPED = 170  # mappings whose keys no type names; 60 are the goal
RECORDS = 30_000_000  # bytes of all published records
PAGE = 2**20  # bytes of the page of one record
UNTYPED_MAPPING = re.compile(r"(?:dict|Mapping)\[str, Any\]")


def functions() -> Iterator[tuple[str, int]]:
    """Yield `file:name` of every function, and how many lines the function has."""
    for file, source in SOURCES.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{file}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_is_too_long():
    tests = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    lengths = {str(file): len(source.splitlines()) for file, source in {**SOURCES, **tests}.items()}
    assert not [file for file, length in lengths.items() if length > LONGEST_FILE]


def test_no_function_is_too_long():
    assert not [name for name, length in functions() if length > LONGEST_FUNCTION]


def test_mappings_have_types():
    assert sum(len(UNTYPED_MAPPING.findall(source)) for source in SOURCES.values()) <= UNTYPED


def test_the_records_stay_small():
    sizes = {path: path.stat().st_size for path in (ROOT / "results/published").rglob("*") if path.is_file()}
    assert sum(sizes.values()) <= RECORDS
    assert not [path for path, size in sizes.items() if path.suffix == ".html" and size > PAGE]
