"""The forecast of a run's cost: planned in seconds, or tried on the machine of the run.

    python -m encore.forecast plan recipe=dapo scale=paper
    python -m encore.forecast plan recipe=dapo scale=paper gpus=8xH100 price=2.5 mfu=0.4 length=0.2
    python -m encore.forecast preflight --recipe r1_zero --scale gpu

`plan` needs no GPU and no download. It prints memory by part, tokens, operations, hours, disk and money of
every stage and evaluation, and writes them to results/<recipe>/<scale>/plan.json. `gpus` is a kind of GPU,
optionally with their number; without it the GPU is the one in the recipe's line on its cost. The other keys
are assumptions (encore/forecast/hardware.py). Exit status: 1 if a job does not fit, 2 after a mistake in the
command. For `preflight` see encore/forecast/preflight.py.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from encore.errors import UserError, nearest
from encore.forecast import plan, preflight, table
from encore.recipe.graph import Graph
from encore.recipe.load import load_all, own_file
from encore.runtime import files

OUT = Path("results")


def _given(words: list[str]) -> dict[str, Any]:
    """Return key -> value of the words key=value. Raises UserError for another word."""
    options: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f'"{word}": expected key=value, such as recipe=dapo')
        try:
            options[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise UserError(f"{key}: cannot be read: {value}") from error
    return options


def planned(words: list[str]) -> int:
    """Print a plan and write it; return the exit status."""
    try:
        options = _given(words)
        user_file = own_file(options)
        named = {"recipe": user_file.stem} if user_file else {}
        made = plan.make(Graph(load_all(user_file=user_file)), options | named)
        out = OUT / made.recipe / made.scale / "plan.json"
        out.parent.mkdir(parents=True, exist_ok=True)
        files.write(out, table.as_json(made))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table.text(made), end="")
    return 0 if made.fits else 1


COMMANDS: dict[str, Callable[[list[str]], int]] = {"plan": planned, "preflight": preflight.main}


def main(words: list[str]) -> int:
    """Carry out the command that the first word names; return the exit status."""
    name = words[0] if words else ""
    if name not in COMMANDS:
        print(f'error: no command "{name}"{nearest(name, list(COMMANDS))}', file=sys.stderr)
        return 2
    return COMMANDS[name](words[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
