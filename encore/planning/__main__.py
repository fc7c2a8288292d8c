"""What a recipe will cost, before it starts: no GPU, no download, in seconds.

    python -m encore.planning recipe=dapo scale=paper
    python -m encore.planning recipe=dapo scale=paper gpus=8xH100 price=2.5 mfu=0.4 length=0.2

Prints memory by part, tokens, operations, hours, disk and money of every stage and evaluation, and writes
them to results/<recipe>/<scale>/plan.json. `gpus` is a kind of GPU, and by a number how many there are;
without it the GPU is the one that the recipe's line on its cost names. The other keys are assumptions
(encore/planning/hardware.py). Exit status 1: a job does not fit, and what would help is said.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from encore.errors import UserError
from encore.planning import plan, table
from encore.recipe.graph import Graph
from encore.recipe.load import load_all, own_file
from encore.runtime import files

OUT = Path("results")


def _given(words: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f'"{word}": expected key=value, such as recipe=dapo')
        try:
            given[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"{key}: cannot be read: {value}") from error
    return given


def main(words: list[str]) -> int:
    try:
        given = _given(words)
        own = own_file(given)
        named = {"recipe": own.stem} if own else {}
        made = plan.make(Graph(load_all(own=own)), given | named)
        out = OUT / made.recipe / made.scale / "plan.json"
        out.parent.mkdir(parents=True, exist_ok=True)
        files.write(out, table.as_json(made))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table.text(made), end="")
    return 0 if made.fits else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
