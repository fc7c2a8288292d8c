"""The evaluation tasks of one checkpoint: their keys and types by the schema, what goes together here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from encore import worlds
from encore.errors import UserError
from encore.recipe.data_sets import is_data_set
from encore.recipe.metric_names import AMONG, SELECTORS
from encore.recipe.schema import check, definition


@dataclass(frozen=True)
class EvalTask:
    """One task: `samples` completions of each item, drawn at one temperature and top-p.

    A task of lm-eval that scores likelihoods draws none: `samples` is 0, `temperature` to `k` mean nothing.
    """

    name: str
    problems: dict[str, Any] | None  # a world and its dials, or a Hub dataset; with `template` and `items`
    lm_eval: str | None  # or a task of lm-eval, with its own prompts and scoring, and these three:
    filter: str | None  # None: the only one it has
    metric: str | None  # None: the only one it has
    fewshot: int | None  # None: as many as it has
    template: str | None
    templates: tuple[tuple[str, str], ...]  # further candidates for a base model, by name: evals/templates.py
    chat: bool | dict[str, Any] | None  # in place of a template; of lm-eval's tasks true or false alone
    items: int | None  # the first so many; None: all of an lm-eval task
    samples: int
    temperature: float
    top_p: float
    max_gen_toks: int
    k: tuple[int, ...]
    score: tuple[str, ...]  # beside the verifier: evals/scores.py
    judge: dict[str, Any] | None = None  # of score judge: evals/judged.py
    tool: dict[str, Any] | None = None  # that the policy may call: encore/sampling/tools.py

    def generation(self) -> dict[str, Any]:
        """lm-eval's `generation_kwargs`; top-k, which transformers' defaults may add, is switched off."""
        greedy = {"do_sample": False, "temperature": 0.0}
        sampled = {"do_sample": True, "temperature": self.temperature, "top_p": self.top_p, "top_k": 0}
        return {**(sampled if self.temperature else greedy), "max_gen_toks": self.max_gen_toks}


SAMPLING = ("samples", "temperature", "top_p", "max_gen_toks", "k")
OF_LM_EVAL = ("filter", "metric", "fewshot")
OWN = "own"  # the task's own template, among the candidates for a base model
PLACES = ("{prompt}", "{first}", "{second}")  # to be filled in a judge's question
ROLES = {
    **dict.fromkeys(SELECTORS, "proxy"),
    "kl": "reference",
    "perplexity": "reference",
}  # score -> the role of evals.models that it is measured by


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
    if "lm_eval" in spec:
        if "template" in spec:
            raise UserError(f"{where}.template: lm-eval's {spec['lm_eval']} has its own prompt; leave it out")
        if isinstance(spec.get("chat"), dict):
            raise UserError(
                f"{where}.chat: lm-eval's {spec['lm_eval']} has its own prompt; expected true or false"
            )
        if "tool" in spec:
            raise UserError(f"{where}.tool: lm-eval's {spec['lm_eval']} asks for one reply; leave it out")
    if "task" in spec and (foreign := [key for key in OF_LM_EVAL if key in spec]):
        raise UserError(
            f"{where}.{foreign[0]}: a key of lm-eval's own tasks, which `lm_eval` names; leave it out"
        )
    draws = "task" in spec or any(key in spec for key in SAMPLING)
    form = () if "chat" in spec else ("template",)
    needed = (*(SAMPLING if draws else ()), *((*form, "items") if "task" in spec else ()))
    if missing := [key for key in needed if key not in spec]:
        raise UserError(f'{where}: "{missing[0]}" is missing')
    if draws:
        _check_sampling(where, spec)
    _check_scores(f"{where}.score", spec)
    _check_templates(f"{where}.templates", spec)
    return EvalTask(
        name=name,
        problems=spec.get("task"),
        lm_eval=spec.get("lm_eval"),
        template=spec.get("template"),
        templates=tuple(spec.get("templates", {}).items()),
        chat=spec.get("chat"),
        items=spec.get("items"),
        filter=spec.get("filter"),
        metric=spec.get("metric"),
        fewshot=spec.get("fewshot"),
        samples=spec.get("samples", 0),
        temperature=float(spec.get("temperature", 0.0)),
        top_p=float(spec.get("top_p", 1.0)),
        max_gen_toks=spec.get("max_gen_toks", 0),
        k=tuple(spec.get("k", ())),
        score=tuple(spec.get("score", ())),
        judge=spec.get("judge"),
        tool=spec.get("tool"),
    )


def _check_templates(where: str, spec: Mapping[str, Any]) -> None:
    """Raise UserError unless each candidate template can be filled in, and the best of them can be told."""
    if "templates" not in spec:
        return
    if "lm_eval" in spec:
        raise UserError(f"{where}: lm-eval's {spec['lm_eval']} has its own prompt; leave it out")
    if is_data_set(spec["task"]) and "verifier" not in spec["task"]:
        raise UserError(f"{where}: nothing verifies the answers, so none of them is the best; leave it out")
    if OWN in spec["templates"]:
        raise UserError(f"{where}.{OWN}: that is the task's own template; call this one something else")
    for name, template in spec["templates"].items():
        if template.count("{question}") != 1:
            raise UserError(f"{where}.{name}: expected {{question}} exactly once, got {template!r}")


def _check_judge(where: str, spec: Mapping[str, Any]) -> None:
    """Raise UserError unless score judge and key judge are both there, with a reply to compare with."""
    asked, judge = "judge" in spec.get("score", ()), spec.get("judge")
    own = where.removesuffix(".score")
    if asked != bool(judge):
        missing, there = ("judge", "score: [judge]") if asked else ("score", "judge")
        raise UserError(f"{own}.{missing}: missing or without judge; it goes with {there}")
    if not judge:
        return
    for place in PLACES:
        if judge["question"].count(place) != 1:
            raise UserError(f"{own}.judge.question: expected {place} exactly once")
    if not is_data_set(spec["task"]) or not {"answer", "chosen"} & spec["task"].keys():
        raise UserError(
            f"{own}.task: a judge compares replies with those of a data set; name their column: answer, or "
            f"chosen and rejected"
        )


def _check_sampling(where: str, spec: dict[str, Any]) -> None:
    """Raise UserError unless there are samples enough for each k, and none is drawn twice."""
    samples = spec["samples"]
    if too_large := [k for k in spec["k"] if k > samples]:
        raise UserError(
            f"{where}.k: {max(too_large)} is more than samples: {samples}; pass@k needs k samples"
        )
    if not spec["temperature"] and samples > 1:
        raise UserError(f"{where}.samples: temperature 0 gives {samples} equal samples; expected 1")


def _check_scores(where: str, spec: dict[str, Any]) -> None:
    """Raise UserError unless the task has what its scores are measured by."""
    scores = spec.get("score", [])
    if scores and "lm_eval" in spec:
        raise UserError(f"{where}: lm-eval's {spec['lm_eval']} has its own scoring; leave it out")
    _check_judge(where, spec)
    for score in scores:
        if score in ROLES or score == "judge":
            continue
        world = worlds.of_task(spec["task"])
        if world is None or (score != "trace" and score not in world.rewards):
            there = f"world {world.name}" if world else "a Hub dataset"
            raise UserError(f"{where}: {there} has no {score} score; leave {score} out")
    for score, which in AMONG.items():
        if score in scores and which not in scores:
            raise UserError(f"{where}: {score} is over the answers of {which}; add {which}")
    if scored := [score for score in scores if score in ROLES and "tool" in spec]:
        raise UserError(f"{where}: {scored[0]} would count what the tool says as the policy's; leave it out")
    if "kl" in scores and (spec["temperature"], spec["top_p"]) != (1.0, 1.0):
        raise UserError(
            f"{where}: kl is of the policy's own samples; expected temperature 1 and top_p 1, "
            f"got {spec['temperature']} and {spec['top_p']}"
        )
