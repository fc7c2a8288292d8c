"""The reference of a recipe's keys: docs/reference.md and, for editors, recipes/recipe.schema.json.

Both are made from the models. `python -m encore.recipe.reference` writes both anew, and a test checks that
they are up to date. The meaning of a key is the comment at its field.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encore.recipe.args import Args
from encore.recipe.base import Model
from encore.recipe.document import Document, ScaleFile
from encore.recipe.evals import Evals
from encore.recipe.kinds import KINDS
from encore.recipe.kinds.stage import Stage
from encore.recipe.mistakes import OF_JSON

PAGE, SCHEMA = Path("docs/reference.md"), Path("recipes/recipe.schema.json")
HEAD = """# What a recipe may say

Written from the models in `encore/recipe/` by `python -m encore.recipe.reference`. A key without a default
may be left out unless a recipe is refused without it. `use: NAME`, or a list of names, in any mapping lays
presets of `recipes/presets/` below the mapping's other keys. What a stage may say depends on its kind, `run`.
"""
LIMITS = {"minimum": "at least", "exclusiveMinimum": "more than"}
LIMITS |= {"maximum": "at most", "exclusiveMaximum": "less than"}


def page() -> str:
    """Return the content of docs/reference.md."""
    parts: dict[str, type[Model]] = {}
    sections = [HEAD, f"## A recipe\n\n{_described(Document, parts)}"]
    sections.append(f"## The file of a scale\n\n{_described(ScaleFile, parts)}")
    sections += [f"## Stage `{run}`\n\n{_described(kind, parts)}" for run, kind in KINDS.items()]
    sections.append(f"## `evals`\n\n{_described(Evals, parts)}")
    described: set[str] = set()
    while left := {name: part for name, part in parts.items() if name not in described}:
        for name, part in left.items():
            described.add(name)
            sections.append(f"## {name}\n\n{_described(part, parts)}")
    return "\n".join(sections)


def editors_schema() -> str:
    """Return the content of recipes/recipe.schema.json, for recipe.yaml and for the file of one scale."""
    definitions: dict[str, Any] = {}
    models: tuple[type[Model], ...] = (*KINDS.values(), Evals, Document, ScaleFile)
    for model in models:
        of_model = model.model_json_schema()
        parts = {**of_model.pop("$defs", {}), model.__name__: of_model}
        for part in parts.values() if issubclass(model, Stage | Evals) else ():
            part.pop("required", None)  # no key is required, because a scale or an arm may set it
        definitions |= parts
    branches = [
        {
            "if": {"properties": {"run": {"const": run}}, "required": ["run"]},
            "then": {"$ref": f"#/$defs/{kind.__name__}"},
        }
        for run, kind in KINDS.items()
    ]
    for name in ("checkpoints", "tasks"):  # null: a layer deletes the entry
        entries = definitions["Evals"]["properties"][name]
        entries["additionalProperties"] = {"anyOf": [entries["additionalProperties"], {"type": "null"}]}
    stages = definitions["Document"]["properties"]["stages"]
    stages["additionalProperties"] = {"type": "object", "required": ["run"], "allOf": branches}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "if": {"required": ["schema"]},
        "then": {"$ref": "#/$defs/Document"},
        "else": {"$ref": "#/$defs/ScaleFile"},
        "$defs": _edited(definitions),
    }
    return _lines(_with_presets(whole))


def _lines(whole: dict[str, Any]) -> str:
    """Return a JSON schema as text, with each definition on its own line."""
    definitions = whole.pop("$defs").items()
    lines = ",\n".join(f'  "{name}": {json.dumps(content)}' for name, content in definitions)
    return f'{json.dumps(whole)[:-1]},\n"$defs": {{\n{lines}\n}}}}\n'


def _with_presets(rules: Any) -> Any:
    """Return a JSON schema in which each mapping with fixed keys may also have `use`, names of presets."""
    if isinstance(rules, list):
        return [_with_presets(each) for each in rules]
    if not isinstance(rules, dict):
        return rules
    laid = {key: _with_presets(each) for key, each in rules.items()}
    if rules.get("additionalProperties") is False and isinstance(rules.get("properties"), dict):
        laid["properties"]["use"] = {"type": ["string", "array"], "description": "presets"}
    return laid


def _edited(rules: Any) -> Any:
    """Return a JSON schema without pydantic's titles, and with the keys of `evals` where a layer has evals.

    If no key tells two kinds of a part apart, the part may be both, so oneOf becomes anyOf.
    """
    if isinstance(rules, list):
        return [_edited(each) for each in rules]
    if not isinstance(rules, dict):
        return rules
    if rules.get("$comment") == "evals":
        return {"$ref": "#/$defs/Evals"}
    named = {"anyOf" if key == "oneOf" else key: each for key, each in rules.items()}
    return {
        key: _edited(each) for key, each in named.items() if not (key == "title" and isinstance(each, str))
    }


def write() -> None:
    """Write the page and the schema into the repository in the current folder."""
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_text(editors_schema(), encoding="utf-8")


def _described(model: type[Model], parts: dict[str, type[Model]]) -> str:
    """Return the description of a model and a table of its keys; add the models in its fields to `parts`.

    Arguments that belong to a base class are left to the table of that class.
    """
    above = model.__mro__[1]
    names = [name for name in model.model_fields if name != "run"]
    text = f"{inspect.getdoc(model)}\n\n"
    if issubclass(above, Args) and above.model_fields:
        parts[above.__name__] = above
        names = [name for name in names if name in inspect.get_annotations(model)]
        text += f"It has the keys of [{above.__name__}](#{above.__name__.lower()}) too.\n\n"
    properties = model.model_json_schema()["properties"] if names else {}
    meanings = {name: text for each in reversed(model.__mro__) for name, text in _comments(each).items()}
    rows = ["| key | value | default | |", "|---|---|---|---|"]
    for name in names:
        field = model.model_fields[name]
        parts |= {part.__name__: part for part in _models(field.annotation) if part.model_fields}
        default = "" if field.is_required() or field.default is None else _default(field.default)
        key = field.alias or name
        cells = [f"`{key}`", _value(properties[key]), default, meanings.get(name, "")]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return text + "\n".join(rows if names else ["It has no keys."]) + "\n"


def _default(value: Any) -> str:
    if isinstance(value, Model) or value in ({}, ()):
        return ""
    return f"`{json.dumps(value)}`"


def _value(rules: dict[str, Any]) -> str:
    """Return a description of a value in words, from its JSON schema."""
    if comment := rules.get("$comment"):
        return "[`evals`](#evals)" if comment == "evals" else str(comment)
    if "$ref" in rules:
        name = rules["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in rules or "oneOf" in rules:
        choices = [
            _value(each) for each in rules.get("anyOf") or rules["oneOf"] if each.get("type") != "null"
        ]
        return " or ".join(choices)
    if "const" in rules:
        return f"`{json.dumps(rules['const'])}`"
    if "enum" in rules:
        return ", ".join(f"`{each}`" for each in rules["enum"])
    kind = rules.get("type")
    if kind == "array" and "items" in rules:
        return f"a list of {_value(rules['items'])}"
    if kind == "array" and "prefixItems" in rules:
        return "two texts"
    if kind == "object" and isinstance(rules.get("additionalProperties"), dict):
        return f"a mapping to {_value(rules['additionalProperties'])}"
    limits = [f"{LIMITS[key]} {rules[key]}" for key in LIMITS if key in rules]
    return " ".join([OF_JSON.get(str(kind), "any value"), *limits])


def _models(annotation: Any) -> Iterator[type[Model]]:
    """Yield the models that an annotation names, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for inner in (*getattr(annotation, "__args__", ()), *getattr(annotation, "__metadata__", ())):
        yield from _models(inner)


def _comments(model: type) -> dict[str, str]:
    """Return field -> the comment after it, or on the lines above it."""
    if not issubclass(model, Model):
        return {}
    lines = inspect.getsource(model).splitlines()
    (definition,) = ast.parse("\n".join(lines)).body
    texts: dict[str, str] = {}
    assert isinstance(definition, ast.ClassDef)
    for node in definition.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        above = node.lineno - 1
        while lines[above - 1].lstrip().startswith("# "):
            above -= 1
        behind = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset :]
        comment = [line.strip() for line in lines[above : node.lineno - 1]] + [behind.strip()]
        texts[node.target.id] = re.sub(r"(^| )# ", r"\1", " ".join(filter(None, comment)))
    return texts


if __name__ == "__main__":
    write()
