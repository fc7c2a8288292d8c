"""No text stands twice in recipes/ that a preset could hold, and no file is too long to be read."""

import re
from collections import defaultdict

from papers import FOLDER

from encore.recipe import presets

FILES = sorted(set(FOLDER.rglob("*.yaml")) - set(FOLDER.rglob("*registered.yaml")))
LONGEST = 400  # lines of a file
BLOCK = 8  # lines that no two places may share
SWEEPS = "dials"  # a sweep writes out what it trains, as its recipe does: it must be readable by itself
LEFT = 38  # blocks that still stand twice elsewhere; take from this number, never add to it


def blocks() -> dict[tuple[str, ...], set[tuple[str, int]]]:
    """Each block of lines, without blank lines and lines of comments -> the places where it stands."""
    places: dict[tuple[str, ...], set[tuple[str, int]]] = defaultdict(set)
    for path in FILES:
        if path.parent.name == SWEEPS:
            continue
        lines = [
            (number, line.strip())
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if line.strip() and not line.strip().startswith("#")
        ]
        for start in range(len(lines) - BLOCK + 1):
            block = tuple(line for _, line in lines[start : start + BLOCK])
            places[block].add((str(path.relative_to(FOLDER)), lines[start][0]))
    return places


def test_no_block_stands_twice():
    twice = {block: places for block, places in blocks().items() if len(places) > 1}
    assert len(twice) == LEFT, [sorted(places) for places in twice.values()][:20]


def test_no_file_is_too_long():
    lengths = {path.relative_to(FOLDER): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {path: length for path, length in lengths.items() if length > LONGEST} == {}


def test_an_editor_is_told_the_schema_of_every_recipe():
    files = [path for path in FILES if path.parent.name != "presets"]
    for path in files:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        schema = first.removeprefix("# yaml-language-server: $schema=")
        assert (path.parent / schema).resolve() == FOLDER.resolve() / "recipe.schema.json", path


def test_every_preset_is_used_by_two_recipes_or_more():
    texts = [path.read_text(encoding="utf-8") for path in FILES]
    for name in presets.read_presets(FOLDER / "presets"):
        use = re.compile(rf"\buse: (\[[^]]*\b)?{re.escape(name)}(?![\w.-])")
        assert sum(bool(use.search(text)) for text in texts) > 1, name
