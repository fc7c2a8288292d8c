"""The file metrics.json of a stage as a sentinel: it is written last and has the digest of the product."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from encore.errors import UserError
from encore.runtime import digests


def digest(folder: Path, of_file: Callable[[Path], str] = digests.of_file) -> str:
    """Return `sha256:<hex>` over the names and contents of all files in `folder`, such as a saved model.

    `of_file` returns the digest of a file; a caller may look digests up instead of reading each file again.
    """
    total = hashlib.sha256()
    for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
        total.update(f"{path.relative_to(folder).as_posix()}\0{of_file(path)}\n".encode())
    return f"sha256:{total.hexdigest()}"


def sizes(folder: Path) -> dict[str, int]:
    """Return file name -> bytes, for every file in `folder`."""
    files = sorted(p for p in Path(folder).rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.stat().st_size for p in files}


def read_sentinel(metrics_json: Path) -> dict[str, Any]:
    """Return the sentinel's content. Raises ValueError if it is cut short or has values of other types."""
    data = json.loads(Path(metrics_json).read_text(encoding="utf-8"))
    if not _is_sentinel(data):
        raise ValueError(f"{metrics_json}: not a stage's metrics.json")
    return data


def _is_sentinel(data: Any) -> bool:
    """Return whether `data` has the keys of a sentinel, with values of the right types."""
    if not isinstance(data, dict) or not all(isinstance(data.get(key), str) for key in ("model", "digest")):
        return False
    within = [data.get(key, {}) for key in ("steps", "upstream", "inputs")]
    if not all(isinstance(entry, dict) for entry in within):
        return False
    steps, *named = within
    return all(map(_is_sentinel, steps.values())) and all(
        isinstance(text, str) for entry in named for text in entry.values()
    )


def of_folder(folder: Path) -> dict[str, Any]:
    """Return the entries of a sentinel for a product: its folder (`model`), its `digest` and its `files`."""
    return {"model": folder.as_posix(), "digest": digest(folder), "files": sizes(folder)}


def products(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of each product in a sentinel: the last model, and the models kept before."""
    return [data, *data.get("steps", {}).values()]


def kept_at(folder: Path, step: int) -> Path:
    """Return the folder in which a stage keeps its model after a step, within its training state."""
    return folder / "steps" / str(step)


def kept_in(folder: Path) -> dict[str, Path]:
    """Return step -> folder of the models that a stage has kept."""
    return {path.name: path for path in sorted(folder.glob("steps/*")) if path.name.isdigit()}


def model_at(data: dict[str, Any], step: int | None) -> dict[str, Any]:
    """Return the sentinel's entries for the model kept after `step`, or for the product if `step` is None.

    Raises UserError if no model was kept after this step.
    """
    if step is None:
        return data
    models = data.get("steps", {})
    if str(step) not in models:
        kept = ", ".join(sorted(models, key=int)) or "none"
        raise UserError(f"{data['model']}: no model is kept for step {step}; kept: {kept}")
    return models[str(step)]


def product(metrics_json: Path, step: int | None = None) -> tuple[Path, str]:
    """Return folder and digest of a stage's product, a model or data, or of its model after a step.

    Raises UserError if the folder is missing, or has changed since metrics.json was written.
    """
    recorded = model_at(read_sentinel(metrics_json), step)
    folder = Path(recorded["model"])
    if not folder.is_dir():
        raise UserError(f"{metrics_json}: its product {folder} is missing; run its stage again")
    if (now := digest(folder)) != recorded["digest"]:
        raise UserError(
            f"{metrics_json}: the files in {folder} have changed since it was written "
            f"(digest {now[:19]}…, expected {recorded['digest'][:19]}…); run its stage again"
        )
    return folder, now
