"""The scores of completions, beside right and wrong, that a task's key `score` names.

| score      | of a completion y to a prompt x                                      | needs                  |
|------------|----------------------------------------------------------------------|------------------------|
| gold       | the world's gold score; a win if above the world's own reply         | the task's world       |
| judge      | how likely a language model prefers y to the data set's reply        | the task's judge       |
| proxy      | the reward model's score, as the mean over its members               | evals.models.proxy     |
| proxy_product | log of the product of the steps' chances (evals/step_scores.py)   | evals.models.proxy     |
| proxy_min  | log of the least of the steps' chances                               | evals.models.proxy     |
| trace      | 1 if it has steps and none of them is wrong                          | the task's world       |
| kl         | log pi(y|x) - log pi_ref(y|x), whose mean is KL(pi || pi_ref)        | evals.models.reference |
| forward_kl | log pi_ref(z|x) - log pi(z|x) of a completion z that pi_ref draws    | evals.models.reference |
| perplexity | exp(-log pi_ref(y|x) / |y|): how far y is from what pi_ref writes    | evals.models.reference |

`language_consistency` and `readability` are rewards of world `bilingual` (encore/worlds/readability.py),
`unrepaired`, `carries` and `lost` (encore/worlds/slips.py) are rewards of `chain`, `other_rule` of `faces`,
`refused` of `refusals`, `visible` and `special_cased` of `functions`, and the habits of `countdown`
(encore/worlds/habits.py).

Log-probabilities, in nats at temperature 1, are taken at the tokens that were drawn, the end of sequence
included.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from encore.data import samples
from encore.errors import UserError
from encore.labels.model_judges import Judge
from encore.models import language_model, reward_model
from encore.models.logprobs import sequence_logps
from encore.models.packing import distinct
from encore.recipe.eval_tasks import ROLES, EvalTask
from encore.recipe.metric_names import OF_WORLD, SELECTORS
from encore.sampling.completion import Completion
from encore.sampling.hf import HuggingFaceSampler
from encore.worlds import Problem
from evals import judged, step_scores

Row = dict[str, Any]  # a row of evals.harness.sample
Redraw = Callable[[list[list[int]], int], list[list[int]]]  # contexts and a cap -> token ids after each


@dataclass(frozen=True)
class Judges:
    """The models that score completions; a model that no task needs is None."""

    policy: Any = None  # the model that drew the completions
    reference: Any = None  # the reference model; `policy` itself if both have the same weights
    proxy: reward_model.RewardModel | None = None
    asked: Mapping[str, Judge] = field(default_factory=dict)  # task -> the judge that compares two replies
    redraw: Redraw | None = None  # draws from the reference


def load(
    tasks: Iterable[EvalTask],
    inputs: Mapping[str, Path],
    source: language_model.Source,
    lm: Any,
    dtype: str,
) -> tuple[Judges, dict[str, str]]:
    """Return the models that the scores of `tasks` need, and role -> digest of each model but the policy.

    A judge's digest has the key `judge/TASK`. `inputs`: role -> metrics.json of a stage; `source` and `lm`
    are the evaluated model and its sampler, and `dtype` is the precision of this model and the reference.
    Raises UserError for a role without an input, and for a model with another tokenizer than the policy's.
    """
    tasks = list(tasks)
    needed = set()
    for task in tasks:
        for score in task.score:
            if score in ROLES and ROLES[score] not in inputs:
                raise UserError(f"evals.tasks.{task.name}.score: {score} needs evals.models.{ROLES[score]}")
            needed.add(score)
    judges: dict[str, Any] = {"asked": judged.load(tasks)}
    digests = {f"judge/{name}": judge.digest for name, judge in judges["asked"].items()}
    if needed & SELECTORS.keys():
        digests["proxy"] = language_model.locate(inputs["proxy"]).digest
        proxy = reward_model.load(inputs["proxy"])
        proxy.same_tokenizer(lm.tokenizer)
        judges["proxy"] = proxy.to(language_model.device())
    if needed & {"kl", "forward_kl", "perplexity"}:
        reference = language_model.locate(inputs["reference"])
        digests["reference"] = reference.digest
        names = f"the reference {reference.place}", f"the policy {source.place}"
        language_model.same_tokenizer(language_model.load_tokenizer(reference), lm.tokenizer, names)
        # vLLM gives no log-probabilities of given tokens, so its model is loaded once more
        sampled_by = lm.model if isinstance(lm.model, PreTrainedModel) else None
        same = reference.digest == source.digest
        known = sampled_by if same else None
        judges["reference"] = known or language_model.load_for_inference(reference, dtype)
        if needed & {"kl", "forward_kl"}:
            policy = judges["reference"] if same else sampled_by
            judges["policy"] = policy or language_model.load_for_inference(source, dtype)
            judges["redraw"] = partial(_redrawn, judges["reference"], lm)
    return Judges(**judges), digests


def score(task: EvalTask, rows: list[Row], judges: Judges) -> None:
    """Add to each row, for each name in `task.score`, a list with the score of each sample.

    The score kl has the key "logratio", and forward_kl the key "forward_logratio". With gold comes
    "reference_gold", the gold score of the world's own reply. Raises UserError if a model's score is not
    finite.
    """
    world: Any = task.task.make_world() if task.task else None
    if "gold" in task.score:
        _add_gold(rows, world)
    for name in OF_WORLD:
        if name in task.score:
            _add_each(rows, name, world.rewards[name])
    if "trace" in task.score:
        _add_each(rows, "trace", partial(step_scores.right_trace, world))
    completions: list[Completion] = [completion for row in rows for completion in row["completions"]]
    if "proxy" in task.score and judges.proxy is not None:
        rewards = judges.proxy.score_ids([[*drawn.context, *drawn.ids] for drawn in completions])
        _add(rows, task, "proxy", rewards.double().mean(dim=0).tolist())
    if (of_steps := step_scores.MADE.keys() & set(task.score)) and judges.proxy is not None:
        chances = step_scores.log_chances(judges.proxy, rows, world)
        for name in sorted(of_steps):
            _add(rows, task, name, step_scores.scores(chances, name))
    if task.name in judges.asked:
        judged.score(task, rows, judges.asked[task.name])
    if "perplexity" in task.score:
        _add(rows, task, "perplexity", _perplexities(judges.reference, completions))
    if "kl" in task.score:
        _add(rows, task, "logratio", log_ratios(judges.policy, judges.reference, completions))
    if "forward_kl" in task.score:
        assert task.max_gen_toks is not None
        redrawn = _by_reference(completions, judges, task.max_gen_toks)
        _add(rows, task, "forward_logratio", log_ratios(judges.reference, judges.policy, redrawn))


def _add_gold(rows: list[Row], world: Any) -> None:
    """Add the world's gold scores of each completion and of the world's own reply."""
    _add_each(rows, "gold", world.rewards["gold"])
    for row in rows:
        problem = samples.problem(row)
        row["reference_gold"] = world.rewards["gold"](problem, world.reference(problem))


def _add_each(rows: list[Row], name: str, value: Callable[[Problem, str], float]) -> None:
    """Add to each row, as `name`, the `value` of each completion with its prompt's prefill before it."""
    for row in rows:
        wholes = [row.get("prefill", "") + completion.said for completion in row["completions"]]
        row[name] = [value(samples.problem(row), whole) for whole in wholes]


def log_ratios(policy: Any, reference: Any, completions: list[Completion]) -> list[float]:
    """Return log pi(y|x) - log pi_ref(y|x) of each completion; equal completions are computed once."""
    if reference is policy:
        return [0.0] * len(completions)
    places, contexts, drawn = _distinct(completions)
    ratios = sequence_logps(policy, contexts, drawn) - sequence_logps(reference, contexts, drawn)
    return ratios[places].tolist()


def _redrawn(reference: Any, lm: Any, contexts: list[list[int]], cap: int) -> list[list[int]]:
    """Return what the reference adds to each context, at most `cap` tokens, drawn as the sampler `lm` draws.

    A completion ends where the policy's would. In place of vLLM, which holds the policy, transformers draws.
    """
    kind = type(lm) if isinstance(lm, HuggingFaceSampler) else HuggingFaceSampler
    sampler = kind(reference, lm.tokenizer, None, lambda done, total: None)
    options = {"do_sample": True, "temperature": 1.0, "top_p": 1.0, "top_k": 0}
    return sampler.continuations(contexts, cap, {*lm.ends}, options)


def _by_reference(completions: list[Completion], judges: Judges, cap: int) -> list[Completion]:
    """Return a completion without text by the reference after the context of each of `completions`.

    If the policy is the reference, the completions are returned themselves.
    """
    if judges.redraw is None or judges.reference is judges.policy:
        return completions
    contexts = [[*completion.context] for completion in completions]
    redrawn = judges.redraw(contexts, cap)
    return [
        Completion("", len(ids), False, ids, context) for ids, context in zip(redrawn, contexts, strict=True)
    ]


def _perplexities(reference: Any, completions: list[Completion]) -> list[float]:
    """Return exp(-log pi_ref(y|x) / |y|) of each completion, end of sequence included; 1 for an empty one.

    It is the measure of arXiv 2504.13837 §4.2 for how well a base model knows the answers of a trained one.
    """
    places, contexts, drawn = _distinct(completions)
    sums = sequence_logps(reference, contexts, drawn)
    tokens = sums.new_tensor([max(len(ids), 1) for ids in drawn])
    return torch.exp(-sums / tokens)[places].tolist()


def _distinct(completions: list[Completion]) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """Return the index of each completion among the distinct completions, and their contexts and tokens."""
    places, alone = distinct((tuple(c.context), tuple(c.ids)) for c in completions)
    return places, [[*context] for context, _ in alone], [[*ids] for _, ids in alone]


def _add(rows: list[Row], task: EvalTask, name: str, values: list[float]) -> None:
    """Add to each row the `values` of its samples."""
    if not np.isfinite(values).all():
        raise UserError(f"evals.tasks.{task.name}: the {name} of a completion is not a number")
    for row in rows:
        count = len(row["completions"])
        row[name], values = values[:count], values[count:]
