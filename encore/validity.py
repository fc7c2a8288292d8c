"""The validity of results: whether the result of an earlier run can be used, or must be made again.

The workflow checks this at its start, and so do jobs. A result holds under four conditions:

- its recipe still says what the result was made from, by the record beside it;
- its files are as its job left them, by the list of digests beside it;
- if it is a stage's, the product of the stage is there unchanged;
- the models that it was made with have not changed.

encore/runtime/digests.py writes the record and the list. Snakemake's own notes in .snakemake do not suffice:
they may be lost, or left behind on another machine.

If a file differs from the list, the job is done again. A user who has changed a result and wants to keep it
deletes the list: a result without a list is accepted as it is.

The lineage of a result depends on its recipe and not on the code, because otherwise a reworded comment would
train everything anew. So a change of the code or of a library is only reported (`differences`), and the
user decides whether to run the stages again.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from time import time_ns
from typing import Any, Self

from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.runtime import digests, files, sentinel
from encore.runtime.provenance import versions

Digest = Callable[[Path], str]  # returns the SHA-256 of a file, computed anew or remembered
ROOT = Path(__file__).parents[1]
# the packages whose changes may change a trained model
TRAINS = ("worlds", "objectives", "data", "models", "rewards", "labels", "sampling", "learning", "stages")
CHOICE = "kept; to make them again: the same command with --forcerun train"
CHECKED = Path(".snakemake/encore.checked.json")
SETTLED = 2 * 10**9  # nanoseconds; two writes within a tick of the clock have the same time

# -- of a result ---------------------------------------------------------------------------------------------


def of_node(graph: Graph, node: Node, digest: Digest = digests.of_file, stored: bool = False) -> str | None:
    """Return why a node's result does not hold; None if it holds, or if there is no result.

    If `stored`, products that are not here lie in a bucket, and a missing one is no reason.
    """
    result = Path(node.sentinel)
    if not result.exists():
        return None
    reason = of_result(result, graph.lineage(node), digest)
    if node.kind != "stage":
        return reason or of_evaluation(graph, node)
    return reason or of_stage(result, digest, stored)


def of_result(result: Path, made_from: str, digest: Digest = digests.of_file) -> str | None:
    """Return why a result was not made from the lineage `made_from` or has changed since, or None."""
    return unlike(result, made_from) or changed(result, digest)


def unlike(result: Path, made_from: str) -> str | None:
    """Return why a result was not made from the lineage `made_from`; None if its record says that it was."""
    record = digests.record(result)
    if not record.exists():
        return "there is no record of what it was made from"
    same = record.read_text(encoding="utf-8", errors="replace").strip() == made_from
    return None if same else "it was made from other settings"


def changed(result: Path, digest: Digest = digests.of_file) -> str | None:
    """Return a phrase about a missing or changed file of a result; None if all are unchanged.

    A result without a list of digests counts as unchanged.
    """
    try:
        listed = digests.listed(result) or {}
    except ValueError:
        return f"its {digests.listing(result).name} is not readable"
    for file, digest_then in listed.items():
        name = file.relative_to(result.parent)
        if not file.is_file():
            return f"its {name} is missing"
        if digest(file) != digest_then:
            return f"its {name} has changed"
    return None


def of_stage(metrics_json: Path, digest: Digest = digests.of_file, stored: bool = False) -> str | None:
    """Return why a stage's product or inputs are no longer as metrics.json says; None if they are.

    A missing input is no reason, because the inputs of a result may be deleted before the result. Neither is
    a missing product if `stored`.
    """
    try:
        data = sentinel.read_sentinel(metrics_json)
    except FileNotFoundError:
        return "it does not exist"
    except (OSError, ValueError):
        return "it is not readable"
    if reason := of_products(data, digest=digest, stored=stored):
        return reason
    for role, path in data.get("upstream", {}).items():
        if _now(Path(path)) not in (None, data.get("inputs", {}).get(role)):
            return f"its input {role} ({path}) has changed"
    return None


def of_products(
    data: Mapping[str, Any], root: Path = Path(), digest: Digest = digests.of_file, stored: bool = False
) -> str | None:
    """Return a phrase about a missing or changed model of a stage; None if all are unchanged.

    `data` is the content of the stage's metrics.json, and `root` the folder of the run. If `stored`, a model
    that is not here lies in a bucket.
    """
    for product in sentinel.products(data):
        folder = root / product["model"]
        if stored and not folder.exists():
            continue
        if not folder.is_dir():
            return f"its model {product['model']} is missing"
        same_sizes = product.get("files") in (None, sentinel.sizes(folder))
        if not same_sizes or sentinel.digest(folder, digest) != product["digest"]:
            return f"its model {product['model']} has changed (digest mismatch)"
    return None


def of_evaluation(graph: Graph, node: Node) -> str | None:
    """Return a phrase about a model that has changed since an evaluation used it; None if none has.

    The models are the checkpoint that was measured, and others such as a reward model that scored it.
    """
    sources = graph.inputs(node)
    if not sources:
        return None
    try:
        done = json.loads(Path(node.sentinel).read_text(encoding="utf-8"))
        measured = {"model": done["digest"]} | done.get("inputs", {})
    except (ValueError, KeyError, TypeError):
        return "it is not readable"
    for role, source in sources.items():
        step = graph.measured(node)[1] if role == "model" else None
        if _now(Path(source.sentinel), step) not in (None, measured.get(role)):
            return "its checkpoint has changed" if role == "model" else f"its {role} model has changed"
    return None


def _now(metrics_json: Path, step: int | None = None) -> str | None:
    """Return the digest of a stage's present product, or of its model after `step`; None if unknown."""
    try:
        digest: str = sentinel.model_at(sentinel.read_sentinel(metrics_json), step)["digest"]
    except (OSError, ValueError, UserError):
        return None
    return digest


def is_of(metrics_json: Path, work: Mapping[str, Any]) -> bool:
    """Return whether a stage's result holds and was made from `work`: its kind, config, seed and inputs."""
    if of_stage(metrics_json) is not None:
        return False
    done = sentinel.read_sentinel(metrics_json)
    return all(done.get(key) == value for key, value in work.items())


def judged(graph: Graph, recipe: str, nodes: Iterable[Node], *rest: Any) -> str:
    """Return a hash of what a page or look is computed from: recipe, lineages of `nodes`, and `rest`."""
    content = [graph.recipes[recipe].layers.content, [graph.lineage(node) for node in nodes], *rest]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# -- of files that were read before --------------------------------------------------------------------------


@dataclass
class Memory:
    """Digests of files that need not be read again, because the file system says that they are unchanged.

    A file counts as unchanged if its size, inode, mtime and ctime are the same as when it was last read. The
    ctime is set by the kernel: no `touch`, `cp -p` or `rsync -t` can set it back. A file that was changed
    less than SETTLED nanoseconds ago is read again.
    """

    known: dict[str, list]  # file -> size, inode, mtime, ctime, digest
    used: set[str] = field(default_factory=set)

    @classmethod
    def load(cls) -> Self:
        """Return the digests that were saved in CHECKED; no digests if the file is lost or damaged."""
        try:
            known = json.loads(CHECKED.read_text(encoding="utf-8"))["files"]
            whole = {name: entry for name, entry in known.items() if len(entry) == 5}
            return cls({name: entry for name, entry in whole.items() if isinstance(entry[4], str)})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls({})

    def digest(self, path: Path) -> str:
        """Return the SHA-256 of a file's content, 64 hex digits."""
        name, stat = str(path), path.stat()
        now = [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
        self.used.add(name)
        entry = self.known.pop(name, [])
        if entry[:-1] != now:
            entry = [*now, digests.of_file(path)]
        if stat.st_ctime_ns < time_ns() - SETTLED:
            self.known[name] = entry
        return entry[-1]

    def save(self) -> None:
        """Save the digests of files that still exist in CHECKED."""
        kept = {name: entry for name, entry in self.known.items() if name in self.used or Path(name).exists()}
        CHECKED.parent.mkdir(exist_ok=True)
        files.note(CHECKED, {"files": kept})


# -- of the code and the libraries ---------------------------------------------------------------------------


def differences(
    stages: Iterable[Path], installed: Mapping[str, str] | None = None, root: Path = ROOT
) -> list[str]:
    """Return a line for each difference in code or libraries between finished stages and now.

    `stages` are the metrics.json of the stages.
    """
    made = [provenance for path in stages if path.exists() and (provenance := _provenance(path))]
    return [*_of_libraries(made, installed or versions()), *_of_code(made, root)]


def _provenance(metrics_json: Path) -> dict[str, Any]:
    """Return the content of a stage's provenance.json; {} if there is none that can be read."""
    try:
        data = json.loads(metrics_json.with_name("provenance.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _of_libraries(made: Sequence[Mapping[str, Any]], installed: Mapping[str, str]) -> list[str]:
    recorded = [data["versions"] for data in made if isinstance(data.get("versions"), dict)]
    counts = Counter((name, str(version)) for versions in recorded for name, version in versions.items())
    return [
        f"warning: {_stages(count)} made with {name} {version}, and {installed[name]} is installed; {CHOICE}"
        for (name, version), count in sorted(counts.items())
        if installed.get(name, version) != version
    ]


def _of_code(made: Sequence[Mapping[str, Any]], root: Path) -> list[str]:
    counts = Counter(data["commit"] for data in made if isinstance(data.get("commit"), str))
    lines = []
    for commit, count in sorted(counts.items()):
        if files_now := _changed_code(commit, root):
            more = f" and {len(files_now) - 1} more" if files_now[1:] else ""
            reason = f"by other code (since commit {commit[:8]}: {files_now[0]}{more})"
            lines.append(f"warning: {_stages(count)} made {reason}; {CHOICE}")
    return lines


def _changed_code(commit: str, root: Path) -> list[str]:
    """Return the files in the packages TRAINS that have changed since a commit.

    The list is empty if `root` is not a git checkout with this commit.
    """
    command = ["git", "diff", "--name-only", commit, "--", *(f"encore/{folder}/*.py" for folder in TRAINS)]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.split()


def _stages(count: int) -> str:
    return "1 stage was" if count == 1 else f"{count} stages were"
