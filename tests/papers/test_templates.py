"""Templates of all recipes: only `{question}` is filled in, other braces reach the model as they stand."""

from collections.abc import Iterator
from typing import Any

import pytest
from papers import RECIPES


def templates(spec: Any) -> Iterator[str]:
    """All values of keys `template` and `templates`, at any depth."""
    if isinstance(spec, dict):
        for key, value in spec.items():
            if key == "template" and isinstance(value, str):
                yield value
            elif key == "templates":
                yield from value.values()
            else:
                yield from templates(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from templates(value)


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_brace_is_doubled_as_if_for_pythons_format(recipe):
    found = [*templates(RECIPES[recipe].layers.content)]
    assert found or recipe == "bandit"  # which asks no model anything
    assert not [template for template in found if "{{" in template or "}}" in template]
