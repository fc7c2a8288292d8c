"""What YAML permits and no recipe has is one line with file, line and key; all else is read as JSON is."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from encore.errors import UserError
from encore.recipe import strict_yaml

BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: 2024-13-45", "line 1: title: YAML reads 2024-13-45 as a date, not text; quote it"),
        ("a:\n  b: [x, 2024-12-31]", "line 2: a.b[1]: YAML reads 2024-12-31 as a date, not text; quote it"),
        ("2024-12-31: x", "line 1: 2024-12-31: YAML reads 2024-12-31 as a date, not text; quote it"),
        ("a: {<<: x}", "line 1: a.<<: YAML reads << as a sign of its own, not text; quote it"),
        ("a: =", "line 1: a: YAML reads = as a sign of its own, not text; quote it"),
        ("seeds: !!int abc", "line 1: seeds: expected a whole number, got abc"),
        ("seeds: !!int ''", "line 1: seeds: expected a whole number, got"),
        ("margin: !!float abc", "line 1: margin: expected a number, got abc"),
        ("primary: !!bool abc", "line 1: primary: expected true or false, got abc"),
        (f"seeds: {'1' * 5000}", f"line 1: seeds: expected a whole number, got {'1' * 40}… (5000"),
        (f"seeds: {'1' * 400}", f"line 1: seeds: expected a finite number, got {'1' * 40}… (400 characters)"),
        ("stages: !!map [a]", "line 1: stages: unexpected tag !!map; remove it"),
        ("stages: !!set {a, b}", "line 1: stages: unexpected tag !!set; remove it"),
        ("title: !!binary aGk=", "line 1: title: unexpected tag !!binary; remove it"),
        ("title: !mine x", "line 1: title: unexpected tag !mine; remove it"),
        ("a: !!python/object/apply:os.getcwd []", "line 1: a: unexpected tag !!python/object/apply:os.g"),
        ("? [a]\n: b", "line 1: expected text as a key, got a list or mapping"),
        (f"a: {'[' * 400}{']' * 400}", "line 1: a: lists and mappings are nested more than 40 levels deep"),
        ("a: &a [*a]", "line 1: a: lists and mappings are nested more than 40 levels deep"),
        (BOMB, "the file has more than 100,000 values once its aliases are expanded"),
    ],
)  # fmt: skip
def test_what_no_recipe_has_is_one_line(tmp_path, text, message):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        strict_yaml.read_yaml(path)
    assert str(error.value).startswith(f"{path}: line ")
    assert message in str(error.value)
    assert len(error.value.lines) == 1


NUMBERS = st.integers(-(10**300), 10**300) | st.floats(allow_nan=False, allow_infinity=False)
CONTENT = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("yaml") / "x.yaml"


@given(CONTENT)
def test_what_was_written_is_read(file, content):
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert strict_yaml.read_yaml(file) == content


SIGNS = [
    *"a19:-?&*!|>%@{}[],#~._=<\n\t'\" ",
    "!!",
    "!!int",
    "!!float",
    "!!map",
    "&a",
    "*a",
    "2024-01-01",
    "1:30",
]
SIGNS += [".inf", "0x", "0o1", "1e9", "true", "null", "<<"]


@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(SIGNS), max_size=30).map("".join))
def test_any_text_is_read_as_json_or_is_one_line(file, text):
    """A text is what JSON can say, as jobs and lineages need it, or is refused in one line."""
    file.write_text(text)
    try:
        json.dumps(strict_yaml.read_yaml(file), allow_nan=False)
    except UserError as error:
        assert len(error.lines) == 1  # noqa: PT017
