"""The evaluation tasks of one checkpoint: their keys and types by the schema, what goes together here."""

from dataclasses import dataclass
from typing import Any

from recipes import worlds
from recipes.errors import UserError
from recipes.spec.schema import check, definition


@dataclass(frozen=True)
class EvalTask:
    """One task: `samples` completions of each item, drawn at one temperature and top-p."""

    name: str
    problems: dict[str, Any] | None  # a world and its dials, or a Hub dataset; with `template` and `items`
    lm_eval: str | None  # or a task of lm-eval, with its own prompts and scoring
    template: str | None
    chat: bool | dict[str, Any] | None  # in place of a template
    items: int | None  # the first so many; None: all of an lm-eval task
    samples: int
    temperature: float
    top_p: float
    max_gen_toks: int
    k: tuple[int, ...]
    score: tuple[str, ...]  # beside the verifier: evals/scores.py

    def generation(self) -> dict[str, Any]:
        """lm-eval's `generation_kwargs`; top-k, which transformers' defaults may add, is switched off."""
        greedy = {"do_sample": False, "temperature": 0.0}
        sampled = {"do_sample": True, "temperature": self.temperature, "top_p": self.top_p, "top_k": 0}
        return {**(sampled if self.temperature else greedy), "max_gen_toks": self.max_gen_toks}


NEEDED = ("samples", "temperature", "top_p", "max_gen_toks", "k")
ROLES = {"proxy": "proxy", "kl": "reference"}  # score -> the role of evals.models that it is measured by


def parse(config: dict[str, Any]) -> list[EvalTask]:
    """The tasks of `{"tasks": {name: {...}}}`. Raises UserError naming task, key and what is expected."""
    check(config, definition("evaluation"), ["evals"])
    return tasks(config)


def tasks(config: dict[str, Any]) -> list[EvalTask]:
    """`parse` for a config whose keys and types are checked already, as those of a recipe are."""
    if not config.get("tasks"):
        raise UserError("evals.tasks: expected at least one task")
    return [_task(name, spec) for name, spec in config["tasks"].items()]


def _task(name: str, spec: dict[str, Any]) -> EvalTask:
    where = f"evals.tasks.{name}"
    if ("task" in spec) == ("lm_eval" in spec):
        raise UserError(
            f'{where}: expected one of "task" (a world or dataset) and "lm_eval" (the name of a task)'
        )
    for key in ("template", "chat"):
        if "lm_eval" in spec and key in spec:
            raise UserError(f"{where}.{key}: lm-eval's {spec['lm_eval']} has its own prompt; leave it out")
    form = () if "chat" in spec else ("template",)
    needed = (*NEEDED, *form, "items") if "task" in spec else NEEDED
    if missing := [key for key in needed if key not in spec]:
        raise UserError(f'{where}: "{missing[0]}" is missing')
    samples = spec["samples"]
    if too_large := [k for k in spec["k"] if k > samples]:
        raise UserError(
            f"{where}.k: {max(too_large)} is more than samples: {samples}; pass@k needs k samples"
        )
    if not spec["temperature"] and samples > 1:
        raise UserError(f"{where}.samples: temperature 0 gives {samples} equal samples; expected 1")
    _check_scores(f"{where}.score", spec)
    return EvalTask(
        name=name,
        problems=spec.get("task"),
        lm_eval=spec.get("lm_eval"),
        template=spec.get("template"),
        chat=spec.get("chat"),
        items=spec.get("items"),
        samples=samples,
        temperature=float(spec["temperature"]),
        top_p=float(spec["top_p"]),
        max_gen_toks=spec["max_gen_toks"],
        k=tuple(spec["k"]),
        score=tuple(spec.get("score", ())),
    )


def _check_scores(where: str, spec: dict[str, Any]) -> None:
    """Raise UserError unless the task has what its scores are measured by."""
    scores = spec.get("score", [])
    if scores and "lm_eval" in spec:
        raise UserError(f"{where}: lm-eval's {spec['lm_eval']} has its own scoring; leave it out")
    for score in scores:
        if score in ROLES:
            continue
        world = worlds.of_task(spec["task"])
        if world is None or score not in world.rewards:
            there = f"world {world.name}" if world else "a Hub dataset"
            raise UserError(f"{where}: {there} has no {score} score; leave {score} out")
    if "kl" in scores and (spec["temperature"], spec["top_p"]) != (1.0, 1.0):
        raise UserError(
            f"{where}: kl is of the policy's own samples; expected temperature 1 and top_p 1, "
            f"got {spec['temperature']} and {spec['top_p']}"
        )
