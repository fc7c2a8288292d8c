"""Every method of TRL and transformers that encore/ overrides or reaches into is pinned by name.

An upgrade that renames one, changes what it takes or no longer calls it would leave an override without
effect, and no error. hooks.json has for each the upstream methods that mention it and, of an override, the
classes it comes from and what it takes. When a test fails: read what changed there, adapt encore/, and only
then write the new pin.
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
from trl import GRPOTrainer

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
    """The methods that a class of ours overrides."""
    own = [base for base in one.__mro__ if base.__module__.startswith("encore.")]
    found = {}
    for name in {name for base in own for name, value in vars(base).items() if inspect.isfunction(value)}:
        bases = [base for base in upstream(one) if name in vars(base) and name != "__init__"]
        if bases:
            pin = {"takes": parameters(vars(bases[0])[name]), "used by": users(name, upstream(one))}
            found[name] = {"in": " ".join(base.__name__ for base in bases), **pin}
    return found


@cache
def reached() -> set[str]:
    """The private names that encore/ mentions, its own among them."""
    trees = [ast.parse(path.read_text()) for path in Path(learning.__path__[0]).parent.rglob("*.py")]
    names = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {name for name in names if re.match("_[a-z]", name)}


@pytest.fixture(scope="module")
def found() -> dict[str, Pin]:
    """All hooks in the form of `PINS`. `GRPOTrainer.…` is what is reached through a GRPOTrainer."""
    pins: dict[str, Pin] = {}
    for one in ours():
        private = {name: {"used by": users(name, upstream(one))} for name in reached()}
        hooks = {**{name: pin for name, pin in private.items() if pin["used by"]}, **overrides(one)}
        for name, pin in hooks.items():
            key = f"{upstream(one)[0].__name__}.{name}"
            pins[key] = {**pin, **pins.get(key, {})}  # another class of ours may override it
    return pins


@pytest.mark.parametrize("name", PINS)
def test_hook(name: str, found: dict[str, Pin]):
    """A hook that is missing here was renamed upstream, or is no longer used by encore/."""
    pins.hold("hooks of TRL and transformers", {name: found.get(name)}, {name: PINS[name]})


def test_every_hook_is_pinned(found: dict[str, Pin]):
    """A new override, or a private name newly used, needs a pin."""
    assert {name: pin for name, pin in found.items() if name not in PINS} == {}


def test_the_loss_reads_the_old_log_probabilities_last():
    """`Objective` sets them while TRL computes the new ones."""
    source = inspect.getsource(GRPOTrainer._compute_loss)
    assert source.index("_get_per_token_logps_and_entropies(") < source.index('"old_per_token_logps"')
    assert source.count('"old_per_token_logps"') == 1


def test_what_a_rollout_is_to_trl():
    """The tensors that encore/ reads and replaces."""
    source = inspect.getsource(GRPOTrainer._compute_loss)
    assert set(re.findall(r'inputs(?:\.get\(|\[)"(\w+)"', source)) >= {
        "prompt_ids",
        "prompt_mask",
        "completion_ids",
        "completion_mask",
        "advantages",
        "old_per_token_logps",
        "num_items_in_batch",
        "tool_mask",
    }
