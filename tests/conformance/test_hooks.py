"""Every method of TRL and transformers that encore/ overrides or reaches into is pinned by name.

An upgrade that renames one, changes what it takes or no longer calls it would leave an override without
effect, and no error. hooks.json has each once: an override as Class.method, with the classes it comes from,
what it takes and the upstream methods that mention it; a private name that encore/ uses by that name alone.
When a test fails: read what changed there, adapt encore/, and only then write the new pin.
"""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pins
import pytest

from encore import learning

UPSTREAM = ("trl", "transformers")

Pin = dict[str, str]
PINS: dict[str, Pin] = json.loads(Path(__file__).with_name("hooks.json").read_text())


@cache
def ours() -> list[type]:
    """Every class of encore/learning that extends one of upstream's."""
    names = [m.name for m in pkgutil.iter_modules(learning.__path__, "encore.learning.")]
    found = {
        value
        for name in names
        for value in vars(importlib.import_module(name)).values()
        if inspect.isclass(value) and value.__module__.startswith("encore.") and upstream(value)
    }
    return sorted(found, key=lambda one: one.__qualname__)


def upstream(one: type) -> list[type]:
    return [base for base in one.__mro__ if base.__module__.split(".")[0] in UPSTREAM]


@cache
def mentions(base: type) -> dict[str, set[str]]:
    """Method of an upstream class -> what it mentions of `self`, of `super()` and of its callbacks."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return {
        part.name: {
            node.attr
            for node in ast.walk(part)
            if isinstance(node, ast.Attribute)
            and ast.unparse(node.value) in ("self", "super()", "self.callback_handler")
        }
        for part in tree.body
        if isinstance(part, ast.FunctionDef)
    }


def users(name: str, bases: Sequence[type]) -> str:
    """The methods of upstream classes that mention an attribute."""
    found = [
        f"{base.__name__}.{method}"
        for base in bases
        for method, names in mentions(base).items()
        if name in names and method != name
    ]
    return " ".join(sorted(found))


def parameters(function: Any) -> str:
    """Without self and annotations: `model trial=None`."""
    signature = inspect.signature(inspect.unwrap(function))
    plain = [str(p.replace(annotation=p.empty)) for p in signature.parameters.values()]
    return " ".join(plain[1:])


def overrides(one: type) -> dict[str, Pin]:
    """The methods that a class of ours itself overrides, as Class.method."""
    found = {}
    for name in (name for name, value in vars(one).items() if inspect.isfunction(value)):
        bases = [base for base in upstream(one) if name in vars(base) and name != "__init__"]
        if bases:
            pin = {"takes": parameters(vars(bases[0])[name]), "used by": users(name, upstream(one))}
            place = f"{bases[0].__name__}.{name}"
            found[place] = {"in": " ".join(base.__name__ for base in bases), **pin}
    return found


@cache
def reached() -> set[str]:
    """The private names that encore/ mentions, its own among them."""
    trees = [ast.parse(path.read_text()) for path in Path(learning.__path__[0]).parent.rglob("*.py")]
    names = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {name for name in names if re.match("_[a-z]", name)}


@pytest.fixture(scope="module")
def found() -> dict[str, Pin]:
    """All hooks in the form of `PINS`."""
    pins: dict[str, Pin] = {}
    for one in ours():
        pins |= overrides(one)
    overridden = {name.split(".")[1] for name in pins}
    bases = sorted({base for one in ours() for base in upstream(one)}, key=lambda base: base.__name__)
    for name in sorted(reached() - overridden):
        methods = [vars(base)[name] for base in bases if inspect.isfunction(vars(base).get(name))]
        if who := users(name, bases):
            pins[name] = {"used by": who, **({"takes": parameters(methods[0])} if methods else {})}
    return pins


@pytest.mark.parametrize("name", PINS)
def test_hook(name: str, found: dict[str, Pin]):
    """A hook that is missing here was renamed upstream, or is no longer used by encore/."""
    pins.hold("hooks of TRL and transformers", {name: found.get(name)}, {name: PINS[name]})


def test_every_hook_is_pinned(found: dict[str, Pin]):
    """A new override, or a private name newly used, needs a pin."""
    assert {name: pin for name, pin in found.items() if name not in PINS} == {}
