"""Presets, which recipes share: `use: NAME` in a mapping merges the preset below the mapping's other keys.

recipes/presets/ has the presets: pins of data sets and models, templates, optimizers. A preset holds values
that no paper sets; a value for which the paper is cited stays in the recipe.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from encore.errors import Mistakes, UserError, nearest
from encore.recipe import strict_yaml
from encore.recipe.strict_yaml import Content
from encore.runtime import suite

USE = "use"

Presets = Mapping[str, Content]  # name -> content


def read_presets(folder: Path | None = None) -> Presets:
    """Return the presets in all files of a folder, by default of recipes/presets.

    A preset may use others, which must not use further ones. Raises UserError at a file that is not a mapping
    of mappings, and at a preset that does not exist.
    """
    written: dict[str, Content] = {}
    files: dict[str, Path] = {}
    folder = folder or suite.folder() / "recipes/presets"
    for path in sorted(folder.glob("*.yaml")):
        content = strict_yaml.read_yaml(path)
        if not isinstance(content, dict):
            raise UserError(f"{path}: expected a mapping from names of presets to their content")
        for name, preset in content.items():
            if not isinstance(preset, dict):
                raise UserError(
                    f"{path}: {name}: expected a mapping, which is merged below the mapping that uses it"
                )
            if name in written:
                raise UserError(
                    f"{path}: {name}: {files[name]} has a preset of this name; rename one of the two"
                )
            written[name], files[name] = preset, path
    presets: dict[str, Content] = {}
    for name, preset in written.items():
        try:
            presets |= laid({name: preset}, written)
        except UserError as error:
            raise UserError(f"{files[name]}: {error.lines[0]}") from None
    return presets


def laid(content: Content, presets: Presets) -> Content:
    """Return the content of a recipe's file with each `use` replaced by its presets.

    Raises UserError with a line for each preset that does not exist.
    """
    mistakes = Mistakes()
    value: Content = _laid(content, presets, "", mistakes)
    mistakes.tell()
    return value


def _laid(value: Any, presets: Presets, place: str, mistakes: Mistakes) -> Any:
    if isinstance(value, list):
        return [_laid(item, presets, f"{place}[{index}]", mistakes) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    prefix = f"{place}." if place else ""
    own_keys = {
        key: _laid(below, presets, f"{prefix}{key}", mistakes) for key, below in value.items() if key != USE
    }
    if USE not in value:
        return own_keys
    names = value[USE] if isinstance(value[USE], list) else [value[USE]]
    below: Content = {}
    for name in names:
        if isinstance(name, str) and name in presets:
            below = over(below, presets[name])
        else:
            mistakes.note(f'{prefix}{USE}: unknown preset "{name}"{nearest(name, list(presets))}')
    return over(below, own_keys)


def over(below: Content, keys: Content) -> Content:
    """Return `keys` merged on top of a preset: mappings are merged, other values replaced, null deletes."""
    merged = dict(below)
    for key, value in keys.items():
        if value is None and key in below:
            del merged[key]
        elif isinstance(value, dict) and isinstance(below.get(key), dict):
            merged[key] = over(below[key], value)
        else:
            merged[key] = value
    return merged
