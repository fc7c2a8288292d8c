"""The model that a command line names."""

import re
from pathlib import Path

from encore.errors import UserError, nearest
from encore.recipe import presets
from encore.recipe.base import IDENTIFIER
from encore.recipe.machine import KINDS, Elsewhere, FolderModel, GgufModel, HubModel, elsewhere

AT_COMMIT = re.compile(r"([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)@([0-9a-f]{40})")


def named(model: str) -> Path | Elsewhere:
    """Return the source of a model that is named on the command line.

    The source is the metrics.json of a stage (which may also be named by its folder), a folder, a GGUF file,
    a preset, or a model of the Hub. Raises UserError for a name that is neither on this machine nor on the
    Hub.
    """
    path = Path(model)
    if (path / "metrics.json").is_file():
        path = path / "metrics.json"
    if path.is_file() and path.name == "metrics.json":
        return path
    if path.is_file() and path.suffix == ".gguf":
        return GgufModel(gguf=str(path))
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UserError(
                f"{path}: no config.json in it; expected the folder of a saved model, or of a stage"
            )
        return FolderModel(path=str(path))
    if match := AT_COMMIT.fullmatch(model):
        return HubModel(hub=match[1], revision=match[2])
    models = {name: preset for name, preset in presets.read_presets().items() if _is_model(preset)}
    if model in models:
        return elsewhere(models[model])
    hub = re.fullmatch(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+(@.*)?", model)
    hint = "; a model of the Hub is named org/name@commit, with the 40 digits of its commit" if hub else ""
    if models:
        hint = hint or nearest(model, [*models])
    raise UserError(f"{model}: no such folder or metrics.json{hint}")


def _is_model(preset: presets.Content) -> bool:
    """Return whether a preset of recipes/presets is a model; one with a split or columns is a data set."""
    return any(kind.key in preset for kind in KINDS) and {*preset} <= {
        key for kind in KINDS for key in kind.model_fields
    }


def identifier(text: str) -> str:
    """Return a name made of a text: lower-case letters, digits and "_"."""
    name = re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_")
    return name if re.fullmatch(IDENTIFIER, name) else f"m_{name}"
