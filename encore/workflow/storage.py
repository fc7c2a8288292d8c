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
from encore.recipe.graph import Graph, Node
from encore.runtime import digests
from encore.workflow.outputs import EVAL_FILES, REPORT, REPORT_FILES, STAGE_FILES

# what the jobs of another machine need for the bucket and for models of the Hub, if it is set here
VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ENDPOINT_URL",
    "AWS_DEFAULT_REGION",
    "HF_TOKEN",
)


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


def state_of(graph: Graph, node: Node) -> str:
    """Return the folder, in checkpoints/, of a stage's training state and product, named by its lineage."""
    return f"{node.folder.removeprefix('results/')}/{graph.lineage(node)[:12]}"


# Snakemake calls the two functions below with `input`, so that it does not compare what they return with what
# they returned in the last run


def around(store: Store | None, graph: Graph, node: Node) -> str:
    """Return the beginning of the command of a node's job; "" if jobs share the folder of the run."""
    if not store:
        return ""
    step, inputs = graph.measured(node)[1], graph.inputs(node)
    at = {"model": f"@{step}"} if step else {}
    products = [f"{source.sentinel}{at.get(role, '')}" for role, source in inputs.items()]
    state = ["--state", f"checkpoints/{state_of(graph, node)}"] if node.kind == "stage" else []
    return store.command("--result", node.sentinel, *state, products=products)


def around_report(store: Store | None, table: Path) -> str:
    """Return the beginning of a report's command; "" if jobs share the folder of the run."""
    return store.command("--results", "--result", str(table)) if store else ""


def notes(store: Store | None, rule: str) -> dict[str, str]:
    """Return the notes beside a rule's results as further outputs, so that a bucket has them too.

    In a shared folder they are no outputs: a user may delete a list of digests to keep a changed result.
    """
    if not store:
        return {}
    results = {
        "train": STAGE_FILES["metrics"],
        "evaluate": EVAL_FILES["scores"],
        "report": REPORT_FILES["table"],
    }
    names = {"digests": digests.listing(results[rule]), "made_from": digests.record(results[rule])}
    if rule == "report":
        names["page_digests"] = digests.listing(f"{REPORT}.html")
    return {name: str(file) for name, file in names.items()}


def variables() -> list[str]:
    """Return the environment variables that jobs on other machines get with their values here."""
    return [name for name in VARIABLES if name in os.environ]
