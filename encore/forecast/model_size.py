"""The architecture of a model, counted from its configuration alone.

The configuration comes from a folder, from the cache of the Hub, or else from `configs/`: copies of published
config.json files, without the keys that do not affect the shape. The results of `counting` are kept beside
Snakemake's own notes, because torch and transformers take seconds to import.
"""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from encore.errors import UserError, nearest
from encore.forecast.architecture import Architecture, Model
from encore.recipe.machine import FolderModel, GgufModel, HubModel, WheelModel
from encore.recipe.shape import Shape
from encore.runtime import files

CONFIGS = Path(__file__).with_name("configs")
Fields = dict[str, Any]
KNOWN = Path(".snakemake/encore.models.json")  # (digest of a configuration, what was asked) -> the result


@cache
def of_model(model: Model) -> Architecture:
    """Return the architecture of a model.

    Raises UserError if its configuration is not here or in the Hub's cache.
    """

    def count(place: Path | None) -> Fields:
        from encore.forecast import counting  # imported here: it needs torch

        return asdict(counting.architecture(model, place))

    return Architecture(**_known(model, "has", count))


@cache
def saved_a_token(model: Model, half: bool) -> float:
    """Return the bytes that one layer keeps of one token for its backward pass, without checkpointing.

    `half`: weights in float32 and computation in bfloat16, as with `bf16: true`. Attention is not
    materialised.
    """

    def count(place: Path | None) -> float:
        from encore.forecast import counting  # imported here: it needs torch

        return counting.saved_a_token(model, place, half)

    return _known(model, "saves half" if half else "saves", count)


def _known(model: Model, what: str, count: Callable[[Path | None], Any]) -> Any:
    """Return the count that `what` names, of a model, from the file KNOWN.

    If the file does not have it, call `count` and add the result to the file.
    """
    place = _place(model)
    key = f"{_digest(model, place)} {what}"
    known: Fields = {}
    with suppress(OSError, ValueError):  # the notes cannot be read, so the model is counted again
        known = json.loads(KNOWN.read_text(encoding="utf-8"))
    if key not in known:
        known[key] = count(place)
        files.note(KNOWN, known)
    return known[key]


def _digest(model: Model, place: Path | None) -> str:
    """Return the digest of everything that the counts of a model depend on."""
    shape = place.read_bytes() if place else model.model_dump_json(exclude_none=True).encode()
    counted_by = " ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    return hashlib.sha256(counted_by.encode() + shape).hexdigest()


def _place(model: Model) -> Path | None:
    """Return the path of a model's config.json; None for a model from scratch.

    Raises UserError if the file is missing.
    """
    if isinstance(model, Shape):
        return None
    if isinstance(model, FolderModel):
        file = Path(model.path) / "config.json"
        if not file.is_file():
            raise UserError(f"model.path: {model.path}: it has no config.json")
        return file
    if isinstance(model, HubModel):
        return _of_hub(model)
    assert isinstance(model, GgufModel | WheelModel)
    if isinstance(model, WheelModel) and (kept := CONFIGS / f"{_config_name(model)}.json").exists():
        return kept
    # imported here, because it needs torch; it fetches and dequantizes the file, as the run itself would
    from encore.models import gguf

    return gguf.located(model)[0] / "config.json"


def _config_name(model: WheelModel) -> str:
    """Return the name that a package's model has among the configurations kept in `configs/`."""
    return f"{model.wheel.split('==')[0]}--{PurePosixPath(model.file).stem}"


def _of_hub(model: HubModel) -> Path:
    """Return the config.json of a model of the Hub, from the Hub's cache or from `configs/`."""
    hub = model.hub
    # imported here, because models in a folder or from scratch do not need it
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(hub, "config.json", revision=model.revision)
    kept = CONFIGS / f"{hub.replace('/', '--')}.json"
    if isinstance(cached, str) or kept.exists():
        return Path(cached) if isinstance(cached, str) else kept
    names = [path.stem.replace("--", "/") for path in CONFIGS.glob("*.json")]
    raise UserError(
        f"model.hub: {hub}: its config.json is neither in the Hub's cache nor among those kept here; "
        f"`hf download {hub} config.json`, or copy it to {kept}{nearest(hub, names)}"
    )
