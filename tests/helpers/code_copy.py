"""A project of a test's own: the code without the recipes, to which the test adds what it runs."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("Snakefile", "profiles/default/*", "encore/**/*.py", "encore/**/*.smk", "encore/recipe/*.yaml")


def lay(folder: Path) -> None:
    """Copy the code of the workflow and of the stages into `folder`, beside an empty folder of recipes."""
    (folder / "recipes").mkdir(parents=True, exist_ok=True)
    for pattern in CODE:
        for path in ROOT.glob(pattern):
            copy = folder / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
