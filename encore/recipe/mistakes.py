"""The error lines for users, made from pydantic's errors: the key, what was expected, and what was found.

For an unknown value the line names the nearest valid one. For a number that YAML 1.1 reads as text it says
how to write it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from encore.errors import Mistakes, nearest

WORDS = "words"  # the type of an error whose message needs no addition
KEY = "[key]"  # the place that pydantic gives an error about a key, not about its value
# type of JSON -> its name in a line
OF_JSON = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false"}
OF_JSON |= {"object": "a mapping", "array": "a list", "null": "null"}
# type of pydantic's error -> what was expected
OF_TYPE = {"int_type": OF_JSON["integer"], "float_type": OF_JSON["number"], "string_type": OF_JSON["string"]}
OF_TYPE |= {"bool_type": OF_JSON["boolean"], "tuple_type": OF_JSON["array"]}
OF_TYPE |= dict.fromkeys(("dict_type", "model_type"), OF_JSON["object"])
LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
EMPTY = ("string_too_short", "too_short")


class Nothing:
    """A placeholder for a null that no field takes, so that the field's type refuses it."""


NOTHING = Nothing()


def lines(
    error: ValidationError, value: Any, path: Iterable[str] = (), where: str = "", whole: bool = True
) -> list[str]:
    """Return a line for each mistake in `value`; it begins with `path` and the key, and ends with `where`.

    `whole` is false for a single layer, because another layer may have the keys that it lacks.
    """
    mistakes, told = Mistakes(), set()
    errors = [(_place(details, value), details) for details in error.errors(include_url=False)]
    errors = [(place, details) for place, details in errors if whole or details["type"] != "missing"]
    errors = [(place, details) for place, details in errors if not _of_its_items(details)]
    hinted = " ".join(details["msg"] for _, details in errors if details["type"] == WORDS)
    for place, details in sorted(errors, key=lambda each: _position(each[0], value)):
        if details["type"] == "missing" and f'did you mean "{place[-1]}"' in hinted:
            continue  # the key exists under a wrong name
        if tuple(place) in told:
            continue  # if even the key or the type is wrong, only this is reported
        told.add(tuple(place))
        at = dotted([*path, *place])
        line = f"{at}: {words(details)}" if at else words(details)
        mistakes.note((line + where).replace("\n", "\\n"))
    return mistakes.lines


def mistaken_places(error: ValidationError, value: Any) -> list[list[str | int]]:
    """Return the paths to values with mistakes; for a missing key, to the mapping that lacks it."""
    errors = error.errors(include_url=False)
    return [
        _place(details, value)[: -1 if details["type"] == "missing" else None]
        for details in errors
        if not _of_its_items(details)
    ]


def remove(value: Any, place: Sequence[str | int]) -> None:
    """Remove the value at a place, if there is one, from nested mappings and lists."""
    *path, last = place
    for part in path:
        value = value[part] if part in _keys(value) else None
    if last in _keys(value):
        del value[last]


def _of_its_items(details: ErrorDetails) -> bool:
    """Return whether a list is too short only because pydantic does not count items with mistakes."""
    return details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]


def words(details: ErrorDetails, nullable: bool = False) -> str:
    """Return the message for an error of pydantic; `nullable`: null would be valid too."""
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "missing":
        return "missing"
    if kind in OF_TYPE:
        wanted = [OF_TYPE[kind], *["null"] * nullable]
        told = hint(value, kind == "int_type", kind == "float_type")
        return f"expected {' or '.join(wanted)}, got {shown(value)}{told}"
    if kind == "literal_error":
        if not isinstance(value, str):
            return f"expected {'text or null' if nullable else 'text'}, got {shown(value)}"
        valid = re.findall(r"'([^']*)'", context["expected"])
        if details["loc"] and details["loc"][-1] == KEY:
            return f"unknown key{nearest(value, valid)}"
        return f"unknown value {shown(value)}{nearest(value, valid)}"
    if kind in LIMITS:
        limit, key = LIMITS[kind]
        return f"expected {limit} {_number(context[key])}, got {shown(value)}"
    if kind == "string_too_long":
        return f"expected at most {context['max_length']} characters, got {len(value)}"
    if kind in EMPTY:
        return "must not be empty"
    return details["msg"]


def shown(value: Any) -> str:
    """Return how an error message names a value: `true`, `nothing`, `the text "a"`, `a list`, or a number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value is NOTHING:
        return "nothing"
    if isinstance(value, str):
        return f'the text "{value}"'
    return "a mapping" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else str(value)


def dotted(parts: Iterable[str | int]) -> str:
    """Return keys and positions as one path: `claims[0].id`."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in parts).lstrip(".")


def _place(details: ErrorDetails, value: Any) -> list[str | int]:
    """Return the keys and positions that lead to an error, without the tags of unions that pydantic adds."""
    place: list[str | int] = []
    for index, part in enumerate(details["loc"]):
        if part == KEY:
            return place if details["type"] == "literal_error" else place[:-1]
        last = index == len(details["loc"]) - 1
        if part in _keys(value):
            value = value[part]
        elif not (last and details["type"] == "missing"):
            continue
        place.append(part)
    return place


def _position(place: Sequence[str | int], value: Any) -> tuple[int, ...]:
    """Return the position of a key in the file, as its positions among its neighbours, level by level.

    A missing key is the last of its level.
    """
    positions = []
    for part in place:
        keys = _keys(value)
        positions.append(keys.index(part) if part in keys else len(keys))
        value = value[part] if part in keys else None
    return tuple(positions)


def _keys(value: Any) -> list[str | int]:
    """Return the keys of a mapping, or the positions of a list; [] for any other value."""
    if isinstance(value, Mapping):
        return list(value)
    return list(range(len(value))) if isinstance(value, list | tuple) else []


def _number(limit: float) -> str:
    return str(int(limit)) if limit == int(limit) else str(limit)


def hint(value: Any, whole: bool, number: bool) -> str:
    """Return how to write a number that YAML 1.1 reads as text, such as 3e-6; "" for other values.

    `whole` and `number`: whether a whole number, or any number, was expected.
    """
    parts = re.fullmatch(r"([+-]?\d+)(?:\.(\d*))?[eE]([+-]?)(\d+)", str(value))
    if parts is None or not (whole or number):
        return ""
    integer, fraction, sign, power = parts.groups()
    if not number:
        return f"; write {float(value):.0f}"
    return f"; write {integer}.{fraction or '0'}e{sign or '+'}{power}"
