"""The evaluation tasks of a recipe, checked."""

from dataclasses import dataclass
from typing import Any

from recipes import worlds
from recipes.errors import UserError, nearest


@dataclass(frozen=True)
class EvalTask:
    """One task: `samples` completions of each item, drawn at one temperature and top-p."""

    name: str
    problems: dict[str, Any] | None  # a world and its dials, or a Hub dataset; with `template` and `items`
    lm_eval: str | None  # or a task of lm-eval, with its own prompts and scoring
    template: str | None
    items: int | None  # the first so many; None: all of an lm-eval task
    samples: int
    temperature: float
    top_p: float
    max_gen_toks: int
    k: tuple[int, ...]
    score: tuple[str, ...]  # beside the verifier: names of SCORES

    def generation(self) -> dict[str, Any]:
        """lm-eval's `generation_kwargs`; top-k, which transformers' defaults may add, is switched off."""
        greedy = {"do_sample": False, "temperature": 0.0}
        sampled = {"do_sample": True, "temperature": self.temperature, "top_p": self.top_p, "top_k": 0}
        return {**(sampled if self.temperature else greedy), "max_gen_toks": self.max_gen_toks}


NEEDED = ("samples", "temperature", "top_p", "max_gen_toks", "k")
ENGINE = ("backend", "backend_args", "batch_size")  # see recipes/sampling/engine.py
KNOWN = ("task", "lm_eval", "template", "items", "checkpoints", "score", *NEEDED)
SCORES = ("gold", "proxy", "kl")  # see evals/scores.py
ROLES = {"proxy": "proxy", "kl": "reference"}  # score -> the role of evals.models that it is measured by


def parse(config: dict[str, Any]) -> list[EvalTask]:
    """The tasks of `{"tasks": {name: {...}}}`. Raises UserError naming task, key and what is expected."""
    for key in config:
        if key not in (known := ["tasks", "seed", *ENGINE]):
            raise UserError(f'evals: unknown key "{key}"{nearest(key, known)}')
    tasks = config.get("tasks")
    if not isinstance(tasks, dict) or not tasks:
        raise UserError("evals.tasks: expected at least one task")
    return [_task(name, spec) for name, spec in tasks.items()]


def _task(name: str, spec: Any) -> EvalTask:
    where = f"evals.tasks.{name}"
    if not isinstance(spec, dict):
        raise UserError(f"{where}: expected keys and values, got {spec!r}")
    for key in spec:
        if key not in KNOWN:
            raise UserError(f'{where}: unknown key "{key}"{nearest(key, list(KNOWN))}')
    if ("task" in spec) == ("lm_eval" in spec):
        raise UserError(
            f'{where}: expected one of "task" (a world or dataset) and "lm_eval" (the name of a task)'
        )
    if "lm_eval" in spec and "template" in spec:
        raise UserError(f"{where}.template: lm-eval's {spec['lm_eval']} has its own prompt; leave it out")
    needed = (*NEEDED, "template", "items") if "task" in spec else NEEDED
    if missing := [key for key in needed if key not in spec]:
        raise UserError(f'{where}: "{missing[0]}" is missing')
    for key in ("samples", "items", "max_gen_toks"):
        if key in spec and not _count(spec[key]):
            raise UserError(f"{where}.{key}: expected an integer of at least 1, got {spec[key]!r}")
    for key, low, high in (("temperature", 0.0, 100.0), ("top_p", 1e-9, 1.0)):
        value = spec[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise UserError(f"{where}.{key}: expected a number from {low:g} to {high:g}, got {value!r}")
    k, samples = spec["k"], spec["samples"]
    if not isinstance(k, list) or not all(_count(value) for value in k):
        raise UserError(f"{where}.k: expected a list of integers of at least 1, got {k!r}")
    if too_large := [value for value in k if value > samples]:
        raise UserError(
            f"{where}.k: {max(too_large)} is more than samples: {samples}; pass@k needs k samples"
        )
    if not spec["temperature"] and samples > 1:
        raise UserError(f"{where}.samples: temperature 0 gives {samples} equal samples; expected 1")
    _check_score(where, spec)
    return EvalTask(
        name=name,
        problems=spec.get("task"),
        lm_eval=spec.get("lm_eval"),
        template=spec.get("template"),
        items=spec.get("items"),
        samples=samples,
        temperature=float(spec["temperature"]),
        top_p=float(spec["top_p"]),
        max_gen_toks=spec["max_gen_toks"],
        k=tuple(k),
        score=tuple(spec.get("score", ())),
    )


def _check_score(where: str, spec: dict[str, Any]) -> None:
    """Whether a task has what its scores are measured by. Raises UserError."""
    scores = spec.get("score", [])
    if not isinstance(scores, list):
        raise UserError(f"{where}.score: expected a list of {', '.join(SCORES)}; got {scores!r}")
    for score in scores:
        if score not in SCORES:
            raise UserError(f'{where}.score: no score "{score}"{nearest(score, [*SCORES])}')
        if "lm_eval" in spec:
            raise UserError(f"{where}.score: lm-eval's {spec['lm_eval']} has its own scoring; leave it out")
    if "gold" in scores:
        world = worlds.of_task(spec["task"])
        if world is None or "gold" not in world.rewards:
            there = f"world {world.name}" if world else "a Hub dataset"
            raise UserError(f"{where}.score: {there} has no gold score; leave gold out")
    if "kl" in scores and (spec["temperature"], spec["top_p"]) != (1.0, 1.0):
        raise UserError(
            f"{where}.score: kl is of the policy's own samples; expected temperature 1 and top_p 1, "
            f"got {spec['temperature']} and {spec['top_p']}"
        )


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
