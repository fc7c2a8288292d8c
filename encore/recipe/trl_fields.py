"""The fields of a configuration class of TRL or transformers, read from its source without importing it.

`import trl` takes seconds and Snakemake parses the Snakefile often, so the class is read with `ast`: the
names, types and defaults of its annotated fields; the fields of base classes come first.
"""

import ast
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from encore.recipe.mistakes import OF_JSON, shown

# The package re-exports these classes lazily, so that its import statement does not name their file.
HOMES = {"transformers.TrainingArguments": "transformers.training_args.TrainingArguments"}
NAMES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
NAMES |= {"dict": "object", "list": "array"}


@dataclass(frozen=True)
class Field:
    types: frozenset[str]  # names of JSON-schema types; empty: any type
    default: str  # source text of the default


@cache
def fields(config: str) -> dict[str, Field]:
    """Return name -> `Field` of the dataclass `package.module.Class`, including the fields of its bases.

    Raises ImportError if the package is not installed or the class does not exist.
    """
    module, _, name = HOMES.get(config, config).rpartition(".")
    tree = ast.parse(_source(module).read_text(encoding="utf-8"))
    definition = _class(tree, module, name)
    imported = {
        alias.asname or alias.name: f"{_absolute(module, node)}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    known: dict[str, Field] = {}
    for base in reversed(definition.bases):
        if isinstance(base, ast.Name) and base.id in imported:
            known |= fields(imported[base.id])
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_argument(node):
            known[node.target.id] = Field(frozenset(_types(node.annotation)), _default(node.value))
    return known


def mistake(field: Field, value: Any) -> str | None:
    """Return the mistake in the type of a field's value; None if the type is right.

    A mapping does not count as text, although TRL's command line takes it, because nothing would check it.
    """
    types = field.types - ({"string"} if "object" in field.types else set())
    if not types or any(_is(value, name) for name in types):
        return None
    names = [*sorted(types - {"null"}), *types & {"null"}]
    return f"expected {' or '.join(OF_JSON[name] for name in names)}, got {shown(value)}"


def _is(value: Any, name: str) -> bool:
    """Return whether a value has the JSON type `name`; 16.0 is not a whole number here, as in Python."""
    if value is None or isinstance(value, bool):
        return name == ("null" if value is None else "boolean")
    classes: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float), "string": (str,)}
    classes |= {"object": (dict,), "array": (list,)}
    return isinstance(value, classes.get(name, ()))


@cache
def enumeration(enum: str) -> list[str]:
    """Return the values of `package.module.Class`, an enumeration of texts.

    Raises ImportError as `fields` does.
    """
    module, _, name = enum.rpartition(".")
    tree = ast.parse(_source(module).read_text(encoding="utf-8"))
    values = [node.value for node in _class(tree, module, name).body if isinstance(node, ast.Assign)]
    return [node.value for node in values if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _class(tree: ast.Module, module: str, name: str) -> ast.ClassDef:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    if not classes:
        raise ImportError(f"{module} has no class {name}")
    return classes[0]


def _source(module: str) -> Path:
    """Return the file of `module` below its top package, without importing more than that package."""
    top, *rest = module.split(".")
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{top} is not installed")
    return Path(spec.submodule_search_locations[0], *rest).with_suffix(".py")


def _absolute(module: str, node: ast.ImportFrom) -> str:
    package = module.split(".")[: -node.level] if node.level else []
    return ".".join([*package, *([node.module] if node.module else [])])


def _is_argument(node: ast.AnnAssign) -> bool:
    """Return whether `__init__` takes a field; it takes neither a ClassVar nor a `field(init=False)`."""
    keywords = node.value.keywords if isinstance(node.value, ast.Call) else []
    return "ClassVar" not in ast.unparse(node.annotation) and not any(
        k.arg == "init" and isinstance(k.value, ast.Constant) and k.value.value is False for k in keywords
    )


def _default(value: ast.expr | None) -> str:
    if isinstance(value, ast.Call):
        for keyword in value.keywords:
            if keyword.arg in ("default", "default_factory"):
                return ast.unparse(keyword.value)
    return "" if value is None else ast.unparse(value)


def _types(annotation: ast.expr) -> set[str]:
    """Return the JSON-schema types of an annotation: `float | None` -> {number, null}; an enum is text."""
    match annotation:
        case ast.BinOp(op=ast.BitOr()):
            return _types(annotation.left) | _types(annotation.right)
        case ast.Constant(value=None):
            return {"null"}
        case ast.Name(id=name):
            return {NAMES[name]} if name in NAMES else {"object"} if name.endswith("Config") else {"string"}
        case ast.Subscript(value=ast.Name(id="Literal")):
            return {"boolean"} if ast.unparse(annotation.slice) in ("True", "False") else {"string"}
        case ast.Subscript(value=value):
            return _types(value)
        case _:
            return set()
