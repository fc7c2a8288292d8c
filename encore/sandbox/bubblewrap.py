"""The command line of a sandbox: bubblewrap around a bare Python, or Python alone if the user insists."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from encore.errors import UserError

INSISTS = ("ENCORE_SANDBOX", "none: these programs may do what they like")
TMPFS = 16 << 20  # bytes of the program's file system
SYSTEM = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")


def command(environment: Mapping[str, str], shown: Sequence[str] = ()) -> list[str]:
    """Return the command that starts a sandbox; `shown`: further folders that programs may read.

    Raises UserError if bubblewrap is not installed, unless the user has switched the sandbox off by the
    environment variable in INSISTS.
    """
    if bare(environment):
        return _python()
    if not (program := shutil.which("bwrap", path=environment.get("PATH"))):
        variable, words = INSISTS
        raise UserError(
            "sandbox: bubblewrap (bwrap) is not installed, and untrusted programs run only inside it; "
            f'apt install bubblewrap, or insist with {variable}="{words}"'
        )
    return [
        *(
            program,
            "--unshare-all",
            "--unshare-user",
            "--uid",
            "65534",
            "--gid",
            "65534",
            "--cap-drop",
            "ALL",
        ),
        *("--die-with-parent", "--new-session"),
        *_visible(),
        *("--dev-bind", "/dev/null", "/dev/null"),
        *("--size", str(TMPFS), "--tmpfs", "/tmp"),
        *(word for folder in shown for word in ("--ro-bind", folder, folder)),
        *("--remount-ro", "/", "--chdir", "/tmp", "--"),
        *_python(),
    ]


def bare(environment: Mapping[str, str]) -> bool:
    """Return whether an environment variable switches the sandbox off. Raises UserError for a wrong value."""
    variable, words = INSISTS
    if variable in environment and environment[variable] != words:
        raise UserError(f'{variable}: expected "{words}", got {environment[variable]!r}')
    return variable in environment


def _visible() -> list[str]:
    """Return the options that show Python and the system's libraries in the sandbox, all read-only."""
    prefix = Path(sys.base_prefix).resolve()
    options = ["--ro-bind", str(prefix), str(prefix)]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            options += ["--symlink", os.readlink(path), str(path)]
        elif path.exists() and not path.is_relative_to(prefix):
            options += ["--ro-bind", str(path), str(path)]
    return options


def _python() -> list[str]:
    """Return the command that runs the source of inside.py in a Python without site-packages and bytecode."""
    source = files("encore.sandbox").joinpath("inside.py").read_text(encoding="utf-8")
    return [
        os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
        "-s",
        "-P",
        "-S",
        "-B",
        "-c",
        source,
    ]
