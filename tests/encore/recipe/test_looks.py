"""The planned looks: which seeds they have, which arms a claim needs, and their files."""

from dataclasses import asdict

import pytest
from judged_claims import by_id

from encore.recipe import looks
from encore.recipe.document import Document
from encore.recipe.looks import LOOKS, Look
from encore.runtime import files

GATES = {
    "clip_cuts": {"metric": "m", "of": "clipped/rl"},
    "apart": {"metric": "m", "of": "a/rl", "against": "far/rl"},
    "spread": {"metric": "m", "of": "frontier/swept"},
}
FRONTIERS = {"swept": ["weak/after", "strong/after", "strong/sft"], "dpo": ["d1/after", "d2/after"]}


def found(seeds: int, *arms: str) -> Look:
    return Look(seeds, {}, [], list(arms))


@pytest.mark.parametrize(
    ("claim", "arms"),
    [
        ({"of": "hot/after"}, {"hot"}),
        ({"of": "hot/after", "against": "cold/base/pretrain"}, {"hot", "cold"}),
        ({"of": "hot/after", "needs": "clip_cuts >= 0.02"}, {"hot", "clipped"}),
        (
            {"of": "hot/after", "needs": ["clip_cuts >= 0.02", "apart within 20%"]},
            {"hot", "clipped", "a", "far"},
        ),
        ({"of": "frontier/swept"}, {"weak", "strong"}),
        ({"of": "frontier/swept", "against": "frontier/dpo"}, {"weak", "strong", "d1", "d2"}),
        ({"of": "hot/after", "against": "frontier/dpo"}, {"hot", "d1", "d2"}),
        ({"of": "hot/after", "needs": "spread >= 0.02"}, {"hot", "weak", "strong"}),
    ],
)
def test_a_claim_needs_both_sides_and_those_of_its_gates(claim, arms):
    """Of a frontier the arms of its places."""
    content = {"schema": 2, "title": "A recipe", "url": "https://example.org", "evals": {}, "gates": GATES}
    content |= {"frontiers": FRONTIERS, "claims": by_id([{"metric": "m", **claim}])}
    content |= {name: {"base": {}} for name in ("stages", "arms", "scales")}
    document = Document.model_validate(content)
    assert document.arms_of(document.claims["c0"]) == arms


def test_seeds_grow_from_look_to_look_with_what_is_open():
    one, two, three = LOOKS
    assert looks.seeds_of("abc", []) == dict.fromkeys("abc", one)
    assert looks.seeds_of("abc", [found(one, "a", "b")]) == {"a": two, "b": two, "c": one}
    taken = [found(one, "a", "b"), found(two, "b")]
    assert looks.seeds_of("abc", taken) == {"a": two, "b": three, "c": one}
    assert looks.seeds_of("abc", [*taken, found(three, "b")]) == {"a": two, "b": three, "c": one}
    assert looks.seeds_of("a", [found(one, "gone")]) == {"a": one}  # an arm of another scale


def test_the_last_look_is_one_that_leaves_nothing_open_or_has_all_seeds():
    one, two, three = LOOKS
    assert looks.following([]) == one
    assert looks.following([found(one, "a")]) == two
    assert looks.following([found(one)]) is None
    assert looks.following([found(one, "a"), found(two, "a"), found(three, "a")]) is None


def test_looks_are_read_one_after_the_other(tmp_path):
    one, two, three = (found(look, "a") for look in LOOKS)
    for look in (one, three):
        files.write_json(tmp_path / looks.path("demo", "cpu", look.seeds), asdict(look))
    assert looks.on_disk("demo", "cpu", tmp_path) == [one]
    files.write_json(tmp_path / looks.path("demo", "cpu", two.seeds), asdict(two))
    assert looks.on_disk("demo", "cpu", tmp_path) == [one, two, three]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seeds": 8}'])
def test_a_file_that_is_no_look_is_none(text, tmp_path):
    path = tmp_path / "8.json"
    path.write_text(text)
    assert looks.read_look(path) is None
