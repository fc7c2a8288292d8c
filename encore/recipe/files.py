"""The files of a recipe: one file with all its scales, or recipe.yaml and a file for each further scale.

A registration (registration.py) lies beside them and is not part of the recipe.

A recipe's checks read one mapping, as if there were one file. The content of gpu.yaml is there at
`scales.gpu`; its claims, published numbers, deviations and new arms are beside the ones in recipe.yaml. In a
folder, a claim or a published number without `scales` has the scales of its own file.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.errors import Mistakes, UserError
from encore.recipe import likeness, strict_yaml
from encore.recipe.presets import Presets, laid
from encore.recipe.strict_yaml import Content

SCHEMA = 2
OLD = "write found for expected, and claims by their ids (docs/claims.md)"
MAIN = "recipe.yaml"
REGISTERED = "registered.yaml"  # the file of a registration, beside MAIN: registration.py
DIALS = "dials"  # the folder of sweeps, in which each recipe is one file
PRESETS = "presets"  # the folder of presets, which recipes share: presets.py
SECTIONS = ("claims", "arms", "published", "deviations")  # sections to which a scale's file may add


@dataclass(frozen=True)
class Files:
    """A recipe's files and their contents."""

    path: Path  # the file, or the folder
    main: Content
    further: dict[str, Content] = field(default_factory=dict)  # scale -> content of its own file

    @property
    def paths(self) -> list[Path]:
        """All files of the recipe; the file with its title is first."""
        return [self.file(), *(self.file(scale) for scale in self.further)]

    def file(self, scale: str = "") -> Path:
        """Return the file of a scale; recipe.yaml, or the only file, if the scale has no file."""
        if not self.path.is_dir():
            return self.path
        return self.path / (f"{scale}.yaml" if scale in self.further else MAIN)

    @property
    def shown(self) -> dict[str, Path]:
        """The files by the names that pages show: paths from `recipes` on. The main file is first."""
        return {_from_recipes(path): path for path in self.paths}

    def joined(self) -> Content:
        """Return the content of all files as one mapping. Raises UserError if two files set the same key."""
        if not self.further:
            return self.main
        whole = {**self.main, "scales": dict(self.main["scales"])}
        home = {"scales": list(self.main["scales"])}
        whole["claims"] = {name: home | claim for name, claim in self.main.get("claims", {}).items()}
        whole["published"] = [home | number for number in self.main.get("published", [])]
        whole["deviations"] = list(self.main.get("deviations", []))
        whole["arms"] = dict(self.main["arms"])
        for scale, content in self.further.items():
            scales = {"scales": [scale]}
            claims, arms = content.get("claims", {}), content.get("arms", {})
            new = {name: scales | layer for name, layer in arms.items() if layer and "about" in layer}
            for section, added in (("claims", claims), ("arms", new), ("scales", scales["scales"])):
                for name in added:
                    if name in whole[section]:
                        place = f"{section}.{name}" if section != "scales" else section
                        raise UserError(
                            f"scales.{scale}.{place}: another file has {name} too; remove one of the two"
                        )
            whole["claims"] |= {name: scales | claim for name, claim in claims.items()}
            whole["arms"] |= new
            whole["published"] += [scales | number for number in content.get("published", [])]
            whole["deviations"] += content.get("deviations", [])
            shared = {key: value for key, value in content.items() if key not in SECTIONS}
            overlays = {name: layer for name, layer in arms.items() if name not in new}
            whole["scales"][scale] = shared | ({"arms": overlays} if overlays else {})
        return whole

    @contextmanager
    def told(self) -> Iterator[None]:
        """Prefix each line of a UserError from the block with the file that the line is about."""
        try:
            yield
        except UserError as error:
            raise UserError("\n".join(map(self.located, error.lines))) from None

    def located(self, line: str) -> str:
        """Return an error line about the joined mapping, reworded for the file that it is about."""
        place, colon, says = line.partition(": ")
        keys = place.split(".")
        for scale, content in self.further.items():
            if place == f"scales.{scale}" or place.startswith(f"scales.{scale}."):
                place = place.removeprefix(f"scales.{scale}").removeprefix(".")
                return f"{self.file(scale)}: {place}{colon if place else ''}{says}"
            if keys[0] in ("claims", "arms") and len(keys) > 1:
                name = place.split(".", 1)[1]
                added = [known for known in _added(content, keys[0]) if f"{name}.".startswith(f"{known}.")]
                if added:
                    return f"{self.file(scale)}: {line}"
        if place.startswith("published["):
            return self._numbered(int(place[len("published[") : place.index("]")]), line)
        return f"{self.file(self._scale(keys, says))}: {line}"

    def _numbered(self, index: int, line: str) -> str:
        """Return an error line about a published number, with its file and its position in this file."""
        behind = line[line.index("]") :]
        for scale, content in ("", self.main), *self.further.items():
            count = len(content.get("published", []))
            if index < count:
                return f"{self.file(scale)}: published[{index}{behind}"
            index -= count
        return f"{self.file()}: {line}"

    def _scale(self, keys: list[str], says: str) -> str:
        """Return the scale whose file an error line is about; "" if it is about recipe.yaml."""
        like = {name: content.get("like") for name, content in self.further.items()}
        for scale in self.further:
            if not re.search(rf"\(scale {re.escape(scale)}[,)]", says):
                continue
            for name in likeness.chain(like, scale):
                if _says(self.further.get(name, {}), keys):
                    return name
            return "" if _says(self.main, keys) else scale
        return ""


def _added(content: Content, section: str) -> list[str]:
    """Return the names of the claims, or of the new arms, that a scale's file adds."""
    added = content.get(section, {})
    return [name for name, value in added.items() if section == "claims" or (value and "about" in value)]


def _says(content: Any, keys: list[str]) -> bool:
    """Return whether a mapping, or one of its arms, sets the nested key `keys`, even to null."""
    at = content
    for key in keys[:-1]:
        at = at.get(key) if isinstance(at, Mapping) else None
    arms = content.get("arms") if isinstance(content, Mapping) else None
    is_set = isinstance(at, Mapping) and keys[-1] in at
    return is_set or any(_says(layer, keys) for layer in (arms or {}).values())


def _from_recipes(path: Path) -> str:
    parts = path.parts
    begin = len(parts) - 1 - parts[::-1].index("recipes") if "recipes" in parts else 0
    return Path(*parts[begin:]).as_posix()


def read_files(path: Path, presets: Presets) -> Files:
    """Return the files of the recipe at a path, a file or a folder, with their presets filled in.

    Raises UserError for the first mistake of each file that cannot be read.
    """
    if not path.is_dir():
        return Files(path, _mapping(path, presets))
    mistakes, contents = Mistakes(), {}
    for file in (path / MAIN, *sorted(set(path.glob("*.yaml")) - {path / MAIN, path / REGISTERED})):
        with mistakes.gather():
            contents[file.stem] = _mapping(file, presets)
    mistakes.tell()
    return Files(path, contents.pop(Path(MAIN).stem), contents)


def _mapping(path: Path, presets: Presets) -> Content:
    content = strict_yaml.read_yaml(path)
    if not isinstance(content, dict):
        kind = "a list or a text" if content else "empty"
        raise UserError(f"{path}: a recipe is a mapping of keys; this file is {kind}")
    version = content.get("schema")
    if type(version) is int and version > 0 and version != SCHEMA:
        raise UserError(
            f"{path}: schema: written for recipe schema {version}; this Encore reads {SCHEMA}; "
            + ("update Encore" if version > SCHEMA else OLD)
        )
    with of_file(path):
        return laid(content, presets)


@contextmanager
def of_file(path: Path) -> Iterator[None]:
    """Prefix each line of a UserError from the block with the path."""
    try:
        yield
    except UserError as error:
        raise UserError("\n".join(f"{path}: {line}" for line in error.lines)) from None


def recipes(folder: Path) -> dict[str, Path]:
    """Return name -> file or folder of each recipe below a folder, in the order of names.

    Raises UserError if two recipes have the same name.
    """
    parts = (folder, folder / DIALS)
    paths = [path for part in parts for path in part.glob("*.y*ml") if not path.name.endswith(REGISTERED)]
    folders = (path for path in folder.glob("[!.]*") if path.name not in (DIALS, PRESETS))
    paths += [path for path in folders if any(path.glob("*.yaml"))]
    named: dict[str, Path] = {}
    for path in sorted(paths, key=lambda path: path.stem):
        if path.stem in named:
            raise UserError(f"{path}: {named[path.stem]} has the same name; rename one of the two")
        named[path.stem] = path
    return named
