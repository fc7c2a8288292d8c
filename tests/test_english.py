"""Docstrings, comments and names are understood at the first reading: what ruff's rules D do not see."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOUSES = ("encore", "evals", "analysis", "snakemake_logger_plugin_encore")
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for house in HOUSES
    for path in sorted((ROOT / house).rglob("*.py"))
}

FRAGMENT = re.compile(r"(Of|Those|That|Whose|Who|Says|What|Where|Which|How|When|Likewise|As|From|With|To)\b")
VALUE = re.compile(r"(The|A|An|Whether|All|For|True)\b")  # begins the docstring of a property
NOT_AN_ACTION = re.compile(r"(The|A|An|This|It|One|All|Each)\b|[^A-Z]")  # beside what D401 knows
ODD = re.compile(
    r"(?<!there )\b(is|are) none\b|\bso many\b|\btold\b|\bsuch a one\b|\bone's own\b|"
    r"\b(None|empty|nothing) where\b|\bin the place of\b|\bth(at|ose) of\b"
)
NO_NAMES = {"are", "both", "few", "found", "given", "has", "have", "here", "it", "never", "none"}  # no nouns
NO_NAMES |= {"one", "only", "own", "since", "such", "there", "those", "two", "was", "whose"}
BARE_VERBS = {"check", "read"}  # a function is named after what it checks or reads


def phrases(source: str) -> Iterator[tuple[int, str, ast.AST | None]]:
    """Yield line, text and node of each docstring, and of each comment with None as its node."""
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text, node
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), None


def mistakes(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and mistake of each docstring, comment and local variable that a reader stumbles over."""
    for line, text, node in phrases(source):
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        is_value = function and any("property" in ast.unparse(item) for item in node.decorator_list)
        if FRAGMENT.match(text) and node:
            yield line, f"a docstring does not begin with {text.split()[0]!r}"
        if is_value and not VALUE.match(text):
            yield line, f"the docstring of a value begins with an article: {text.split()[0]!r}"
        if function and not is_value and NOT_AN_ACTION.match(text):
            yield line, f"the docstring of an action begins with a verb: {text.split()[0]!r}"
        if function and not re.search(r"[.…][`\")]*(\s|$)", text):
            yield line, "a docstring has a full sentence"
        if odd := ODD.search(text):
            yield line, f"say it otherwise: {odd[0]!r}"
    tree = ast.parse(source)
    for line, name in locals_of(tree):
        if name in NO_NAMES:
            yield line, f"a local variable is a noun: {name!r}"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") in BARE_VERBS:
            yield node.lineno, f"a function's name says what it reads or checks: {node.name!r}"


def locals_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable and parameter, without the fields of classes."""
    fields = {
        id(item.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id


def test_the_text_of_the_code_is_plain():
    found = [f"{file}:{line}: {what}" for file, text in SOURCES.items() for line, what in mistakes(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "mistake"),
    [
        ('"""Of a run: its seeds."""\n', "a docstring does not begin with 'Of'"),
        ('class Job:\n    """What is run."""\n', "a docstring does not begin with 'What'"),
        ('def f():\n    """The mean."""\n', "the docstring of an action begins with a verb: 'The'"),
        ('def f():\n    """(n,) -> ()."""\n', "the docstring of an action begins with a verb: '(n,)'"),
        ('def f():\n    """Return the mean"""\n', "a docstring has a full sentence"),
        (
            'class A:\n    @property\n    def f(self):\n        """Mean."""\n',
            "the docstring of a value begins with an article: 'Mean.'",
        ),
        ("x = 1  # seeds; there are so many\n", "say it otherwise: 'so many'"),
        ("x = 1  # None where nothing is logged\n", "say it otherwise: 'None where'"),
        ("y = [one for one in range(3)]\n", "a local variable is a noun: 'one'"),
        ("def f(own):\n    pass\n", "a local variable is a noun: 'own'"),
        ("def _read(path):\n    pass\n", "a function's name says what it reads or checks: '_read'"),
    ],
)
def test_a_mistake_is_seen(source, mistake):
    assert [what for _, what in mistakes(source)] == [mistake]


def test_plain_text_is_let_through():
    source = '''"""Means over seeds."""
class Run:
    """A run of a recipe."""
    own: int  # seeds of the run; 0 if there is none
    @property
    def mean(self):
        """The mean over seeds."""
def f(values):
    """Return the mean of `values`."""
'''
    assert not list(mistakes(source))
