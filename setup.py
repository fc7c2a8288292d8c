"""The part of the build that pyproject.toml cannot say: a wheel has files of a clone in encore/suite.

encore/runtime/suite.py finds them there. An editable installation has no copies: it uses those of the clone.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SUITE = (
    "Snakefile",
    "CITATION.cff",
    "profiles/*/config.yaml",
    "recipes/**/*.yaml",
    "recipes/recipe.schema.json",
    "results/published/*/claims.csv",  # the verdicts of `encore list`, the spreads of `encore power`
    "results/published/conformance.csv",
    "results/published/verifier_audit.csv",
)


def suite_files() -> list[str]:
    """Return the files of the suite, by their paths in the clone.

    Raises FileNotFoundError if a pattern matches no file.
    """
    files = {pattern: [path.as_posix() for path in Path().glob(pattern)] for pattern in SUITE}
    if missing := [pattern for pattern, matches in files.items() if not matches]:
        raise FileNotFoundError(f"expected files for the wheel, got none for {', '.join(missing)}")
    return sorted(name for matches in files.values() for name in matches)


class BuildWithSuite(build_py):
    """The build of the packages, and of the copies."""

    def run(self) -> None:
        super().run()
        for source, copy in self._copies().items():
            Path(copy).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)

    def _copies(self) -> dict[str, str]:
        """Return source -> copy in the wheel."""
        if self.editable_mode:
            return {}
        return {name: f"{self.build_lib}/encore/suite/{name}" for name in suite_files()}

    def get_source_files(self) -> list[str]:
        """Return the files that an archive of the source must have."""
        return [*super().get_source_files(), *suite_files()]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return the files that the build writes."""
        return [*super().get_outputs(include_bytecode), *self._copies().values()]


setup(cmdclass={"build_py": BuildWithSuite})
