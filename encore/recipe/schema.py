"""What a recipe may contain, and a value against it: the first violation in one line.

The line has the key's path, what is expected there, and for an unknown key the nearest that is known.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from encore.errors import Mistakes, nearest
from encore.recipe.base import unknown_key
from encore.recipe.mistakes import OF_JSON, dotted, hint, shown


def _matches_whole(validator: Any, pattern: str, value: Any, rules: Any) -> Iterator[ValidationError]:
    """The violation of a `pattern`, which is of the whole text: `$` would let a line break end it."""
    if validator.is_type(value, "string") and not re.fullmatch(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


# JSON Schema takes 16.0 for an integer; Python does not.
Validator = extend(
    Draft202012Validator,
    validators={"pattern": _matches_whole},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of a recipe's file."""
    return _read("schema.yaml")


def pattern(name: str) -> str:
    """The regular expression of `name` or `identifier`, for the full text."""
    rule: str = schema()["$defs"][name]["pattern"]
    return rule


def definition(name: str) -> dict[str, str]:
    """A schema by its name in schema.yaml's `$defs`."""
    return {"$ref": f"#/$defs/{name}"}


def _read(name: str) -> dict[str, Any]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def check(value: Any, rules: dict, path: Iterable[str] = (), where: str = "") -> None:
    """Raise all violations of a JSON schema, each as a line that begins with `path` and ends with `where`."""
    mistakes, places = Mistakes(), set()
    for error in Validator({"$defs": schema()["$defs"], **rules}).iter_errors(value):
        place = (*error.absolute_path,) if error.validator != "required" else error.message
        if place in places:
            continue  # what has not even the right type is told of that alone
        places.add(place)
        for line in _lines(error, list(path)):
            key = line.removesuffix(": missing").rpartition(": ")[2]
            if line.endswith(": missing") and any(f'did you mean "{key}"' in one for one in mistakes.lines):
                continue  # it is there by another name
            mistakes.note((line + where).replace("\n", "\\n"))
    mistakes.tell()


def _lines(error: ValidationError, path: list[str]) -> list[str]:
    """A violation's lines: one for each key that is unknown or missing, else one."""
    place = [*path, *error.absolute_path]
    value: Any = error.instance
    if error.validator == "additionalProperties":
        valid = list(error.schema.get("properties", {}))  # type: ignore[union-attr]
        return [f"{dotted([*place, key])}: {unknown_key(key, valid)}" for key in value if key not in valid]
    if error.validator == "required":
        at = dotted(place)
        lacking: Any = error.validator_value
        return [f"{at}: {key}: missing" if at else f"{key}: missing" for key in lacking if key not in value]
    return [_line(error, path)]


def _line(error: ValidationError, path: list[str]) -> str:
    at = dotted([*path, *error.absolute_path])
    prefix = f"{at}: " if at else ""
    value: Any = error.instance
    expected: Any = error.validator_value
    rules: Any = error.schema
    if error.validator == "pattern":
        return f'{prefix}expected {rules["description"]}, got "{value}"'
    if error.validator == "type":
        types = [expected] if isinstance(expected, str) else expected
        wanted = " or ".join(OF_JSON[t] for t in types)
        told = hint(value, "integer" in types, "number" in types)
        return f"{prefix}expected {wanted}, got {shown(value)}{told}"
    if error.validator == "enum":
        return f"{prefix}unknown value {shown(value)}{nearest(value, [str(e) for e in expected])}"
    limits = {"minimum": "at least", "maximum": "at most"}
    limits |= {"exclusiveMinimum": "more than", "exclusiveMaximum": "less than"}
    if str(error.validator) in limits:
        return f"{prefix}expected {limits[str(error.validator)]} {expected}, got {shown(value)}"
    if error.validator == "maxLength":
        return f"{prefix}expected at most {expected} characters, got {len(value)}"
    if error.validator in ("minItems", "minProperties", "minLength"):
        return f"{prefix}must not be empty"
    return prefix + str(error.message).splitlines()[0]
