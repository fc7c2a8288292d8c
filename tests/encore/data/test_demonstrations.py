"""Several sources of demonstrations in one set: as many rows of each as were asked for."""

from pathlib import Path
from typing import Any

import pytest
import stage_runs
import typed
from hypothesis import given
from hypothesis import strategies as st

from encore.data import corpora, demonstrations
from encore.errors import UserError
from encore.learning.language_model import SortedWindows

TEMPLATE = "<user>{question}<assistant>"
GENERAL: dict[str, Any] = {
    "task": {"world": "preferences"},
    "template": TEMPLATE,
    "corpus": {"mixture": {"good": 1.0}},
}
COLD: dict[str, Any] = {
    "task": {"world": "bilingual"},
    "template": TEMPLATE,
    "corpus": {"documents": 50, "mixture": {"readable": 1.0}},
}
ROW = {"prompt": "1+2=", "completion": "3", "question": "1+2=", "answer": "3", "difficulty": 2}


def counted(count: int) -> dict[str, Any]:
    return GENERAL | {"corpus": GENERAL["corpus"] | {"documents": count}}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """30 rows that a stage has made."""
    return stage_runs.rows_product(tmp_path, [ROW | {"completion": str(i)} for i in range(30)])


def sizes(config: dict[str, Any], data: Path | None) -> dict[str, int]:
    return {name: len(rows) for name, rows in demonstrations.sources(typed.sft(config), data, 0).items()}


def test_one_source_is_what_it_was(data):
    assert demonstrations.sources(typed.sft({}), data, 0) == {"data": demonstrations.load(data)}
    assert demonstrations.sources(typed.sft(COLD), None, 3) == {
        "task": demonstrations.of_task(typed.source(COLD), 3)
    }
    assert [(row["prompt"], row["completion"]) for row in demonstrations.of_task(typed.source(COLD), 3)] == (
        corpora.documents(*typed.corpus(COLD), 3)
    )


def test_counts_and_shares(data):
    general = GENERAL | {"share": 0.25}
    assert sizes({"also": {"general": general}}, data) == {"data": 30, "general": 10}  # of 40 rows
    assert sizes({"problems": 6, "also": {"general": general}}, data) == {"data": 6, "general": 2}
    assert sizes({"also": {"general": counted(7)}}, data) == {"data": 30, "general": 7}
    also = {"cold": COLD, "general": GENERAL | {"share": 0.5}}
    assert sizes({"also": also}, data) == {"data": 30, "cold": 50, "general": 80}
    assert sizes(COLD | {"also": {"general": GENERAL | {"share": 0.001}}}, None) == {"task": 50, "general": 1}


def test_the_rows_of_a_source_are_those_it_has_alone(data):
    found = demonstrations.sources(
        typed.sft({"problems": 6, "also": {"general": GENERAL | {"share": 0.4}}}), data, 5
    )
    assert found["data"] == demonstrations.load(data)[:6]
    assert found["general"] == demonstrations.of_task(typed.source(counted(4)), 5)
    assert found["general"] != demonstrations.of_task(typed.source(counted(4)), 6)


@given(st.integers(1, 60), st.floats(0.01, 0.6), st.floats(0.01, 0.39), st.none() | st.integers(1, 60))
def test_shares_are_of_all_rows(own, first, second, more):
    also = {"a": GENERAL | {"share": first}, "b": GENERAL | {"share": second}}
    also |= {"c": counted(more)} if more else {}
    found = sizes(counted(own) | {"also": also}, None)
    total = sum(found.values())
    for name, share in (("a", first), ("b", second)):
        assert abs(found[name] - share * total) <= 1.5  # its own rounding, and that of the other
    assert found["task"] == own
    assert found.get("c") == more


def test_every_step_mixes_the_sources():
    """The trainer draws a new order each epoch, so what lies one after another is learnt together."""
    order = SortedWindows([5] * 800, window=32, seed=0)
    taken = [*order]
    for start in range(0, len(taken), 32):
        assert 1 <= sum(i >= 600 for i in taken[start : start + 32]) <= 16  # 8 expected: 200 of 800
    order.set_epoch(1)
    assert sorted([*order]) == sorted(taken) != taken != [*order]


def test_too_few_rows_are_told(data, monkeypatch):
    with pytest.raises(UserError, match=r"^problems: 31 asked, but .* has 30 rows$"):
        demonstrations.sources(typed.sft({"problems": 31}), data, 0)
    monkeypatch.setattr(demonstrations.hub, "load", lambda task, keys: [{"p": "x", "c": "y"}] * 5)
    hub = {
        "task": {"hub": "org/name", "revision": "a" * 40, "split": "train", "prompt": "p", "completion": "c"}
    }
    for size in ({"problems": 6}, {"share": 0.2}):
        with pytest.raises(UserError, match=r"^also.general.problems: \d asked, but org/name split train"):
            demonstrations.sources(typed.sft({"also": {"general": hub | size}}), data, 0)
