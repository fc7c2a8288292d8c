"""The YAML files of lm-eval's tasks by name, without importing lm-eval, whose own index takes a minute."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from itertools import chain, takewhile
from pathlib import Path

from encore.errors import UserError

OWN = Path(__file__).parents[2] / "evals/tasks"  # those of this repository, and a user's own
NAMED = re.compile(r"""^["']?(task|group)["']?:[ \t]*["']?([^\s"'#\[]+)""", re.MULTILINE)


@cache
def find(name: str, own: Path = OWN) -> Path:
    """The file of a task: one in the folder `own`, or else one of lm-eval's fourteen thousand.

    Raises UserError, which begins with `lm_eval`, for an unknown name and for that of a group of tasks.
    """
    tasks: dict[str, str] = {}  # in small letters -> as it is
    groups = set()
    for path in chain(sorted(own.rglob("*.yaml")), _of_lm_eval(name)):
        for kind, found in NAMED.findall(path.read_text(encoding="utf-8")):
            if (kind, found) == ("task", name):
                return path
            if kind == "task":
                tasks[found.lower()] = found
            else:
                groups.add(found)
    near = tasks[get_close_matches(name.lower(), sorted(tasks), n=1, cutoff=0)[0]]
    if name in groups:
        raise UserError(f'lm_eval: "{name}" is a group of tasks; name one of them, such as "{near}"')
    raise UserError(f'lm_eval: lm-eval has no task "{name}"; did you mean "{near}"?')


def _of_lm_eval(name: str) -> Iterator[Path]:
    """lm-eval's own files, those of folders called like the name first (aime24 is in `aime`), then all."""
    installed = find_spec("lm_eval")
    for place in (installed and installed.submodule_search_locations) or ():
        begins = "".join(takewhile(str.isalpha, name.lower()))
        yield from sorted(Path(place, "tasks").glob(f"{begins}*/**/*.yaml"))
        yield from sorted(Path(place, "tasks").rglob("*.yaml"))
