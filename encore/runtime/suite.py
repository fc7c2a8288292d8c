"""The files of Encore that are not Python: the Snakefile, recipes, profiles, and tables of published records.

In a clone they lie at its top. A wheel has copies of them in `encore/suite` (setup.py), so that an installed
Encore works in any folder. A clone always uses its own files, whatever is installed.
"""

import shlex
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from encore.runtime import digests

CODE = Path(__file__).resolve().parents[2]  # the clone, or site-packages; links to it are followed
PACKAGED = CODE / "encore/suite"
PACKAGES = ("encore", "evals", "analysis", "snakemake_logger_plugin_encore")
NAME = "encore-rl"  # the name of the package, and of its version in a run's provenance
DIGITS = 12  # digits of a digest in text


class Package(NamedTuple):
    """An installed wheel: its version, and the SHA-256 of its files as they are now.

    The same wheel has the same digest on every machine.
    """

    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.version} (files {self.digest[:DIGITS]})"


def is_clone(work: Path = Path()) -> bool:
    """Return whether a folder has the files of a clone, so that `snakemake` finds its Snakefile there."""
    return (work / "Snakefile").is_file() and (work / "recipes").is_dir()


def folder(work: Path = Path()) -> Path:
    """Return the folder of the Snakefile and recipes: the working folder if it is a clone, else Encore's."""
    if is_clone(work):
        return work
    return PACKAGED if PACKAGED.is_dir() else CODE


def snakemake() -> str:
    """Return how to call Snakemake in the working folder: outside a clone, with the Snakefile's path."""
    return "snakemake" if is_clone() else f"snakemake --snakefile {shlex.quote(f'{folder()}/Snakefile')}"


@cache
def package() -> Package | None:
    """Return the wheel that this code was installed from; None if the code is in a clone."""
    if not PACKAGED.is_dir():
        return None
    paths = sorted(path for name in PACKAGES for path in (CODE / name).rglob("*") if path.is_file())
    kept = [path for path in paths if path.suffix != ".pyc"]
    names = [(digests.of_file(path), path.relative_to(CODE).as_posix()) for path in kept]
    return Package(version(NAME), sha256(digests.text_of(names).encode()).hexdigest())


def install(extra: str) -> str:
    """Return the command that installs an extra: from the clone, or for the installed package."""
    return f"pip install '{NAME}[{extra}]'" if package() else f"pip install -e '.[{extra}]'"
