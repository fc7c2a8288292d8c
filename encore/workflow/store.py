"""The storage of a run whose jobs share no folder, as on Kubernetes: results and checkpoints lie in a bucket.

    snakemake … --default-storage-provider s3 --default-storage-prefix s3://BUCKET/FOLDER

Snakemake itself keeps the files that its rules name in the bucket. It works on copies of these files in a
folder of its own, which `link` joins to `results/`, so that each file has one place on a machine. Further
files, such as weights, are carried by the command of each job (encore/workflow/carry.py).
"""

import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.errors import UserError

# what the jobs of another machine need for the bucket and for models of the Hub, if it is set here
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL")
VARIABLES += ("AWS_DEFAULT_REGION", "HF_TOKEN")


@dataclass(frozen=True)
class Store:
    url: str  # s3://BUCKET/FOLDER, without a slash at its end
    copies: Path  # folder in which Snakemake keeps its copies of what lies below the URL

    def link(self) -> None:
        """Make `results/` the folder of Snakemake's copies of results."""
        copies, results = self.copies / "results", Path("results")
        results.mkdir(exist_ok=True)
        copies.parent.mkdir(parents=True, exist_ok=True)
        try:
            copies.symlink_to(results.absolute())
        except FileExistsError:  # an earlier run or a job beside this one has made the link
            if not copies.is_symlink():
                raise UserError(f"{copies}: a folder; expected a link to results/; remove it") from None

    def place(self, file: str) -> str:
        """Return the path, relative to the folder of the run, of what may be one of Snakemake's copies."""
        return file.removeprefix(f"{self.copies}/")

    def command(self, *options: str, products: Iterable[str] = ()) -> str:
        """Return the beginning of a job's command: what carries the job's files from and to the bucket.

        `products` are the sentinels of stages whose products the job reads, each with @STEP for the model
        after a step.
        """
        words = ["python", "-m", "encore.workflow.carry", self.url, *options]
        words += [word for product in products for word in ("--product", product)]
        return shlex.join([*words, "--"])


def of(settings: Any) -> Store | None:
    """Return the storage that Snakemake's storage settings name; None if jobs share the folder of the run.

    Raises UserError if it is not a bucket of S3.
    """
    provider, url = settings.default_storage_provider, settings.default_storage_prefix
    if provider is None:
        return None
    if provider != "s3":
        raise UserError(f"--default-storage-provider: expected s3, got {provider}")
    if not re.fullmatch(r"s3://[^/]+(/[^/]+)*/?", url or ""):
        raise UserError(f"--default-storage-prefix: expected s3://BUCKET/FOLDER, got {url or 'nothing'}")
    bucket_and_folder = url.removeprefix("s3://").rstrip("/")
    return Store(f"s3://{bucket_and_folder}", settings.local_storage_prefix / provider / bucket_and_folder)


def variables() -> list[str]:
    """Return the environment variables that jobs on other machines get with their values here."""
    return [name for name in VARIABLES if name in os.environ]
