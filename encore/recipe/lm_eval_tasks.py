"""The YAML files of lm-eval's tasks by name, without importing lm-eval, whose own index takes a minute."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from itertools import chain, takewhile
from pathlib import Path
from typing import NamedTuple

import yaml

from encore.errors import UserError
from encore.recipe.strict_yaml import Content

OWN = Path(__file__).parents[2] / "evals/tasks"  # tasks of this repository and of a user
NAMED = re.compile(r"""^["']?(task|group)["']?:[ \t]*["']?([^\s"'#\[]+)""", re.MULTILINE)
TOKENS = 256  # largest completion that lm-eval allows if a task's file sets no limit


class Settings(NamedTuple):
    """The settings of a task in its file: whether the model generates, its metrics and its filters."""

    generates: bool
    fewshot: int  # worked examples before a question
    filters: list[str]
    metrics: list[str]
    tokens: int  # largest number of tokens of a completion


@cache
def find(name: str, own_folder: Path = OWN) -> Path:
    """Return the file of a task, from the folder `own_folder` or from lm-eval's fourteen thousand files.

    Raises UserError, with a message that begins with `lm_eval`, for an unknown name and for the name of a
    group of tasks.
    """
    tasks: dict[str, str] = {}  # name in lower case -> name
    groups = set()
    for path in chain(sorted(own_folder.rglob("*.yaml")), _of_lm_eval(name)):
        for kind, name_in_file in NAMED.findall(path.read_text(encoding="utf-8")):
            if (kind, name_in_file) == ("task", name):
                return path
            if kind == "task":
                tasks[name_in_file.lower()] = name_in_file
            else:
                groups.add(name_in_file)
    near = tasks[get_close_matches(name.lower(), sorted(tasks), n=1, cutoff=0)[0]]
    if name in groups:
        raise UserError(f'lm_eval: "{name}" is a group of tasks; name one of them, such as "{near}"')
    raise UserError(f'lm_eval: lm-eval has no task "{name}"; did you mean "{near}"?')


def _of_lm_eval(name: str) -> Iterator[Path]:
    """Yield each path of lm-eval's files, first from folders named like the task (aime for aime24)."""
    installed = find_spec("lm_eval")
    for place in (installed and installed.submodule_search_locations) or ():
        begins = "".join(takewhile(str.isalpha, name.lower()))
        likely = sorted(Path(place, "tasks").glob(f"{begins}*/**/*.yaml"))
        yield from likely
        yield from sorted({*Path(place, "tasks").rglob("*.yaml")}.difference(likely))


def settings(name: str) -> Settings:
    """Return the settings of a task in its file and in the files that this one includes.

    Raises UserError as `find` does.
    """
    content = _content(find(name))
    generation = content.get("generation_kwargs") or {}
    limit = generation.get("max_gen_toks", generation.get("max_new_tokens", TOKENS))
    return Settings(
        content.get("output_type", "generate_until") == "generate_until",
        int(content.get("num_fewshot") or 0),
        [each["name"] for each in content.get("filter_list") or ()],
        [each["metric"] for each in content.get("metric_list") or () if isinstance(each["metric"], str)],
        int(limit),
    )


def data_set(name: str) -> tuple[str, str] | None:
    """Return the name on the Hub and the subset of a task's data set; None if it is not on the Hub.

    Raises UserError as `find` does.
    """
    content = _content(find(name))
    path = content.get("dataset_path") or ""
    return (path, content.get("dataset_name") or "default") if path.count("/") == 1 else None


class _Loader(yaml.SafeLoader):
    """A loader that reads lm-eval's `!function module.name` as None."""


_Loader.add_multi_constructor("!", lambda loader, tag, node: None)


def _content(path: Path) -> Content:
    """Return the content of a task's file, merged on top of the files that it includes."""
    content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    included = content.pop("include", [])
    base: Content = {}
    for name in [included] if isinstance(included, str) else included:
        base |= _content(path.parent / name)
    return {**base, **content}
