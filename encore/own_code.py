"""A user's code that a recipe names: `my_module:name`, a function or class of my_module.py.

The file lies in the folder that snakemake is called in, or where Python finds the module. A recipe's lineage
has the digest of this one file, not of the files that it imports. Before a job the file is only parsed for
the names that it defines; if it defines a world, the file is also run, to read the world's settings.
"""

import ast
import importlib.util
import os
import re
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any

from encore import own_watch
from encore.errors import UserError, first_line, nearest

NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
LIMIT = 60.0  # seconds that a call may take


class Failed(UserError):
    """An error that a user's code raised when it was called."""


class Slow(UserError):
    """An error for a call of a user's code that took too long."""


def is_own(name: object) -> bool:
    """Return whether a name in a recipe, such as `my_module:name`, refers to a user's code."""
    return isinstance(name, str) and ":" in name


def digest(name: str) -> str | None:
    """Return the SHA-256, 64 hex digits, of the file that `name` is in; None if there is no file."""
    try:
        return sha256(_file(name).read_bytes()).hexdigest()
    except UserError:
        return None


def check_name(name: str) -> None:
    """Raise UserError unless the file exists and is Python code that defines the name."""
    file, wanted = _file(name), name.partition(":")[2]
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UserError(f"{name}: {file}{line}: not Python: {first_line(error)}") from None
    names = list(_defined(tree))
    if wanted not in names:
        near = nearest(wanted, names) if names else ""
        raise UserError(f'{name}: nothing is called "{wanted}" in {file}{near}')


def load(name: str) -> Any:
    """Return the object that `name` names, by running its file once.

    Raises UserError as `check_name` does, and if the file fails.
    """
    check_name(name)
    file = _file(name)
    return getattr(_run(file, sha256(file.read_bytes()).hexdigest()), name.partition(":")[2])


def bounded(name: str, function: Callable[..., Any], limit: float | None = None) -> Callable[..., Any]:
    """Return a function like `function` that raises Slow if a call takes more than `limit` seconds.

    By default `limit` is LIMIT. Errors of the user's code become Failed. Slow and Failed are UserErrors that
    begin with `name`. The limit holds in the main thread, where stages call rewards and verifiers. Python
    code and regular expressions are interrupted. If code cannot be interrupted, the whole process is ended,
    with an error line in its log (`own_watch`).
    """
    seconds = LIMIT if limit is None else limit

    def call(*arguments: Any, **columns: Any) -> Any:
        try:
            with _watched(name, seconds), _alarm(seconds):
                return function(*arguments, **columns)
        except _Late:
            raise Slow(f"{name}: not done after {seconds:g} seconds of one call; it must be faster") from None
        except UserError:
            raise
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}, line {place.lineno}"
            raise Failed(f"{name}: {type(error).__name__}: {first_line(error)} ({where})") from error

    return call


@contextmanager
def _watched(name: str, limit: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    tell = _watch(os.getpid()).stdin
    assert tell is not None
    # the watcher was ended from outside, which is no reason to end a training
    with suppress(BrokenPipeError):
        tell.write(own_watch.begun(name, limit))
    try:
        yield
    finally:
        with suppress(BrokenPipeError):
            tell.write(own_watch.DONE)


@cache
def _watch(process: int) -> subprocess.Popen[bytes]:
    """Return the process that watches this process, whose id is `process`; a fork starts its own."""
    command = [sys.executable, "-I", "-S", own_watch.__file__, str(process)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0)


class _Late(BaseException):
    """An error raised when a call's time is over. It is no Exception, so that user code seldom catches it."""


@contextmanager
def _alarm(limit: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    rung = []

    def ring(number: int, frame: FrameType | None) -> None:
        rung.append(number)
        raise _Late

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if rung:  # the user's code has caught the error, as a bare `except:` does
        raise _Late


def _file(name: str) -> Path:
    if not NAME.fullmatch(name):
        raise UserError(f"{name}: expected my_module:name, a Python file and a name in it")
    module = name.partition(":")[0]
    file = Path(*module.split(".")).with_suffix(".py")
    if file.is_file():
        return file
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise UserError(f"{name}: no file {file} in {Path.cwd()}, and Python finds no module {module}")
    return Path(spec.origin)


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


@cache
def _run(file: Path, content: str) -> Any:
    """Run a file and return its module; `content`, the file's digest, makes a changed file run again."""
    name = f"encore_own_{file.stem}_{content[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None  # a file that ends in .py has a spec
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks for its module there
    bounded(f"{file}", spec.loader.exec_module)(module)
    return module
