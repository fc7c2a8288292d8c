"""Tasks of lm-eval with what a recipe sets: filter and metric, number of examples, and decoding.

    gsm8k: {lm_eval: gsm8k, filter: strict-match, fewshot: 5, samples: 1, temperature: 0.0, top_p: 1.0,
            max_gen_toks: 512, k: [1]}
    hellaswag: {lm_eval: hellaswag, metric: acc_norm}

lm-eval reports a number for every filter and metric of a task. Here one filter and one metric count, and the
recipe must name them if there are several: gsm8k has two filters, minerva_math500 two metrics. A task that
scores the likelihoods of given texts, as hellaswag does, draws no samples and has none of their keys.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any

from lm_eval.tasks import TaskManager

from encore.data import forms
from encore.errors import UserError, first_line, known
from encore.recipe import lm_eval_tasks
from encore.recipe.eval_tasks import SAMPLING, EvalTask
from encore.runtime import hub_errors, suite

FEWSHOT_SEED = 1234  # lm-eval's default
OURS = "problems"  # evals/tasks/problems.yaml: the problems of a recipe's `task`


@dataclass(frozen=True)
class Benchmark:
    """A task of lm-eval, and the filter and the metric that count."""

    task: Any  # lm_eval.api.task.Task
    filter: str
    metric: str


def form_of(task: EvalTask, lm: Any) -> forms.Prompter:
    """Return the form in which a task puts its questions to the model `lm`.

    For a task of lm-eval by chat, whose questions lm-eval puts itself, the form only says how replies end.
    """
    if not task.chat:
        return forms.of(task.form, None)
    try:
        return forms.of(task.form, lm.tokenizer)
    except UserError as error:
        raise UserError(f"evals.tasks.{task.name}.{error}") from None


def load(task: EvalTask, seed: int, folder: Path = lm_eval_tasks.OWN, lm: Any = None) -> Benchmark:
    """Return lm-eval's task with the number of samples, the decoding and the examples that a recipe sets.

    `seed` draws the problems of a world. `lm` is the model whose chat template a task by chat uses. A task of
    lm-eval is first looked for among the YAML files in `folder`. Raises UserError for an unknown task, filter
    or metric, for more examples than the task has, and for missing data or packages.
    """
    where = f"evals.tasks.{task.name}"
    loaded = _loaded(task, seed, folder, lm, where)
    benchmark = Benchmark(loaded, "none", "accuracy")  # the filter and metric of problems.yaml
    if task.lm_eval is not None:
        benchmark = Benchmark(loaded, _filter(loaded, task, where), _metric(loaded, task, where))
        _check_task(benchmark, task, where)
    loaded.set_config("task", task.name)
    loaded.set_config("repeats", task.samples or 1)
    if task.samples:
        loaded.set_config("generation_kwargs", task.generation(), update=True)
    if task.fewshot is not None:
        loaded.set_config("num_fewshot", task.fewshot)
    elif loaded.get_config("num_fewshot") is None:
        loaded.set_config("num_fewshot", 0)
    loaded.set_fewshot_seed(FEWSHOT_SEED)
    return benchmark


def _loaded(task: EvalTask, seed: int, folder: Path, lm: Any, where: str) -> Any:
    """Return lm-eval's object for a task, before it is configured."""
    name, metadata, place = OURS, None, lm_eval_tasks.OWN
    if task.lm_eval is None:
        form = form_of(task, lm)
        metadata = {
            "spec": task.task,
            "items": task.items,
            "skip": task.skip,
            "form": form,
            "seed": seed,
        }
    else:
        name, place = task.lm_eval, _place(task.lm_eval, folder, where)
    manager = TaskManager(include_path=place, include_defaults=False, metadata=metadata)
    try:
        return manager.load([name])["tasks"][name]
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    except hub_errors.ERRORS as error:
        wanted = hub_errors.Wanted("data set", f"the data set of {name}")
        raise UserError(f"{where}: cannot load its data: {hub_errors.explain(error, wanted)}") from error
    except (ImportError, AssertionError) as error:  # a task imports the packages it scores with
        reason = f"{first_line(error)}; {suite.install('benchmarks')}"
        raise UserError(f"{where}.lm_eval: {name} needs more packages: {reason}") from error


def _place(name: str, folder: Path, where: str) -> Path:
    try:
        return lm_eval_tasks.find(name, folder).parent
    except UserError as error:
        raise UserError(f"{where}.{error}") from None


def _filter(loaded: Any, task: EvalTask, where: str) -> str:
    filters = [each["name"] for each in loaded.get_config("filter_list") or []] or ["none"]
    return _one(task.filter, filters, f"{where}.filter", f"filter of {task.lm_eval}")


def _metric(loaded: Any, task: EvalTask, where: str) -> str:
    return _one(task.metric, [*loaded.aggregation()], f"{where}.metric", f"metric of {task.lm_eval}")


def _one(asked: str | None, names: list[str], where: str, what: str) -> str:
    """Return the name that is asked for, or the only name. Raises UserError if it is missing or ambiguous."""
    if asked is not None:
        known(where, [asked], names, what)
        return asked
    if len(names) > 1:
        raise UserError(f"{where}: missing; name a {what}: {', '.join(names)}")
    return names[0]


def _check_task(benchmark: Benchmark, task: EvalTask, where: str) -> None:
    """Raise UserError unless a task of this kind can be run here, with the recipe's keys."""
    loaded, name = benchmark.task, task.lm_eval
    if getattr(loaded, "UNSAFE_CODE", False):
        raise UserError(f"{where}.lm_eval: {name} runs code that the model wrote, which Encore does not do")
    draws, keys = loaded.OUTPUT_TYPE == "generate_until", ", ".join(SAMPLING)
    if draws and not task.samples:
        raise UserError(f'{where}: "{SAMPLING[0]}" is missing: {name} draws samples; expected {keys}')
    if task.samples and not draws:
        raise UserError(
            f"{where}.{SAMPLING[0]}: {name} scores likelihoods, without samples; leave out {keys}"
        )
    aggregations = loaded.aggregation()
    if not _is_mean(aggregations[benchmark.metric]):
        means = [metric for metric, aggregation in aggregations.items() if _is_mean(aggregation)]
        others = f"; its means: {', '.join(means)}" if means else ", nor has it another metric that is"
        raise UserError(f"{where}.metric: {benchmark.metric} of {name} is no mean over items{others}")
    if task.fewshot:
        _check_examples(loaded, task.fewshot, f"{where}.fewshot", f"{name}")


def _is_mean(aggregation: Callable[[list], float]) -> bool:
    """Return whether an aggregation of lm-eval is the mean over items, or over all parts of all items.

    It is tried on two examples. ifeval's inst_level_strict_acc has parts: an item has several instructions.
    """
    for values, mean in (([1.0, 0.0, 0.0, 1.0], 0.5), ([[True, False], [True]], 2 / 3)):
        with suppress(Exception):  # an aggregation of other values raises its own kind of error here
            if isclose(aggregation(values), mean):
                return True
    return False


def _check_examples(loaded: Any, fewshot: int, where: str, name: str) -> None:
    examples = len(loaded.sampler.fewshot_docs()) if hasattr(loaded, "sampler") else 0
    if loaded.fewshot_cfg.split == loaded.get_config("test_split"):
        examples -= 1  # an item cannot be an example for itself
    if examples < fewshot:
        raise UserError(f"{where}: {fewshot} asked for, but {name} has {max(examples, 0)} examples")
