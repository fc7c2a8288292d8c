"""A reader of YAML that accepts only mappings, lists, texts, numbers, true, false and null.

YAML permits more, which no reader expects and this one refuses: a key that occurs twice or is not text, an
infinite number, a date, a tag. ruamel.yaml refuses a key that occurs twice, but not the rest, and its reader
in Python would be slow, as all recipes are read at each start.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from encore.errors import UserError, first_line
from encore.recipe.mistakes import dotted

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TAG = "tag:yaml.org,2002:"
SCALARS = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
SCALARS |= {"null": "null"}
DEEPEST = 40  # levels of lists and mappings; the recipes here have 13
# Number of values, with aliases written out: a few lines of aliases can name billions. The longest recipe
# here has 2,080.
MOST = 100_000

Content = dict[str, Any]  # a mapping from YAML, which has not been read into a type yet
Place = tuple[str | int, ...]  # keys and positions that lead to a value


def read_yaml(path: Path) -> Any:
    """Return the content of a file. Raises UserError, in one line that begins with the path."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None
    return parse(text, str(path))


def parse(text: str, path: str) -> Any:
    """Return the content of a text. Raises UserError, in one line that begins with `path`."""
    try:
        loader = Loader(text)
        try:
            node = loader.get_single_node()
            return None if node is None else _Content(loader).value(node, ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{path}: {place}not YAML: {error.problem}") from None
    except (yaml.YAMLError, UserError) as error:
        raise UserError(f"{path}: {first_line(error)}") from None


class _Content:
    """A reader of the values in one document, which `loader` parses."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.count = 0

    def value(self, node: yaml.Node, place: Place) -> Any:
        """Return the value of a node. Raises UserError with the node's line and place."""
        self.count += 1
        if len(place) > DEEPEST:
            raise _mistake(node, place[:1], f"lists and mappings are nested more than {DEEPEST} levels deep")
        if self.count > MOST:
            raise _mistake(
                node, place, f"the file has more than {MOST:,} values once its aliases are expanded"
            )
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, place)
        kind = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != TAG + kind:
            raise _mistake(node, place, f"unexpected tag {_tag(node)}; remove it")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place)
        return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]

    def mapping(self, node: yaml.MappingNode, place: Place) -> Content:
        values: Content = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            name = self.key(key, place)
            if name in values:
                raise _mistake(key, (*place, name), f"written twice (first in line {lines[name]})")
            values[name], lines[name] = self.value(value, (*place, name)), key.start_mark.line + 1
        return values

    def key(self, node: yaml.Node, place: Place) -> str:
        """Return the text of a key; a whole number, such as a step, becomes text."""
        if not isinstance(node, yaml.ScalarNode):
            raise _mistake(node, place, "expected text as a key, got a list or mapping")
        name = self.scalar(node, (*place, node.value))
        if isinstance(name, int) and str(name) == node.value:
            return str(node.value)
        if not isinstance(name, str):
            wrong = f"YAML reads this key as {name!r}, not text; quote it"
            raise _mistake(node, (*place, node.value), wrong)
        return name

    def scalar(self, node: yaml.ScalarNode, place: Place) -> str | int | float | bool | None:
        kind = _tag(node).removeprefix("!!")
        text = node.value if len(node.value) <= 40 else f"{node.value[:40]}… ({len(node.value)} characters)"
        if kind == "timestamp":
            raise _mistake(node, place, f"YAML reads {text} as a date, not text; quote it")
        if kind in ("merge", "value"):
            raise _mistake(node, place, f"YAML reads {text} as a sign of its own, not text; quote it")
        if kind not in SCALARS:
            raise _mistake(node, place, f"unexpected tag {_tag(node)}; remove it")
        try:
            value: str | int | float | bool | None = self.loader.construct_object(node)
        except (ValueError, LookupError):  # raised for `!!int abc`, and for more digits than Python reads
            raise _mistake(node, place, f"expected {SCALARS[kind]}, got {text}") from None
        if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
            raise _mistake(node, place, f"expected a finite number, got {text}")
        return value


def _tag(node: yaml.Node) -> str:
    return str(node.tag.replace(TAG, "!!"))


def _mistake(node: yaml.Node, place: Place, wrong: str) -> UserError:
    at = f"{dotted(place)}: " if place else ""
    return UserError(f"line {node.start_mark.line + 1}: {at}{wrong}".replace("\n", "\\n"))
