"""The training of a policy on pairs of completions, which stages `dpo` and `kto` share.

The pairs come from a stage such as `label`. As in stage `reward_model`, a prompt is left out if the prompt
and one of its completions together exceed `max_length` tokens, so all three stages use about the same pairs.
The reference model is the input `reference`, or the policy before training. Every field of `args` goes to the
method's configuration class of TRL.

After training, the implicit reward beta log pi/pi_ref is measured like a reward model: how often does it put
the chosen completion above the rejected one, on pairs trained on and on held-out pairs?
"""

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from datasets import Dataset
from torch import Tensor
from torch.nn.functional import softplus

from encore.data import preferences, token_ids
from encore.learning.dpo import TokenPair, length, tokenise
from encore.learning.fit import clean
from encore.models import lora
from encore.models.experts import idle
from encore.models.language_model import disable_dropout
from encore.models.logprobs import sequence_logps
from encore.recipe.kinds.pairs import PairsStage
from encore.runtime import curves, health
from encore.stages.job import Job
from encore.stages.outcome import Outcome
from encore.stages.policy import Policy, load_policy, load_reference, loading_options, positions
from encore.stages.trainer_config import arguments, batch_size, check_evaluation

MEASURED = 2048  # pairs of the training data, evenly spread, whose implicit reward is measured at the end
CHANCE = 0.5
# largest share of ties; if there are more, the policy has not moved, or pairs have equal completions
TIED = 0.01


@dataclass(frozen=True)
class Method:
    """A method of learning from pairs: its classes of TRL, its examples, and its cost."""

    config: Any  # class of the arguments
    trainer: Any
    examples: Callable[[Sequence[TokenPair]], list[Any]]  # makes the rows of the trainer's data
    unit: str  # the name of several examples
    flops: int  # operations for each parameter and each token of prompts and completions
    formula: str  # text that says how these are made up


def tune(stage: PairsStage, job: Job, method: Method) -> Outcome:
    """Train the policy by a method and save it."""
    rows, skipped = preferences.usable(preferences.load(job.inputs["data"]))
    checks = health.stop_at_errors(preferences.checks(rows, skipped))
    args = arguments(method.config, stage, job.workdir, job.seed, save_steps=100)
    options = loading_options(stage, args)
    policy = load_policy(stage, job.inputs, **options)
    fitting, _ = token_ids.fitting(rows, token_ids.tokenised(rows, policy.tokenizer), args.max_length)
    checks.append(health.left_out(len(rows) - len(fitting), len(rows), args.max_length))
    pairs = _pairs(stage, fitting, job.seed)
    reference = load_reference(policy, job.inputs, **options)
    if args.disable_dropout:
        disable_dropout(policy.model)
    tokens = {split: tokenise(some, policy.tokenizer) if some else [] for split, some in pairs.items()}
    train, validation = tokens["train"], tokens["validation"]
    examples = method.examples(train)
    checks += health.stop_at_errors([health.enough(len(examples), batch_size(args), method.unit)])
    checks += _checks([*pairs["train"], *pairs["validation"]], train, validation, policy)
    check_evaluation(args, len(validation), "validation pairs")
    trainer = method.trainer(
        model=policy.model,
        ref_model=reference.requires_grad_(False),
        args=args,
        train_dataset=Dataset.from_list(examples),
        eval_dataset=Dataset.from_list(method.examples(validation)) if args.eval_strategy != "no" else None,
        processing_class=policy.tokenizer,
        peft_config=lora.adapters(stage.lora, policy.model, job.seed),
    )
    if args.precompute_ref_log_probs:  # the log-probabilities have been added to the data
        trainer.ref_model = None
        reference.to("cpu")
    done = policy.train(trainer, stage, job)
    policy.save(job.workdir)
    del trainer
    gc.collect()  # frees the optimizer's state, which makes room for the reference
    reference.to(policy.model.device)

    curve = curves.deterministic(curves.rows(done.history))
    parameters = lora.parameters(policy.model)
    metrics: dict[str, float] = {
        **curves.scalars(curve),
        **_ranked(policy.model, reference, train, validation, args.beta),
        **preferences.metrics(skipped),
        "skipped/long": len(rows) - len(fitting),
        "pairs": len(train),
        method.unit: len(examples),
        "pairs/validation": len(validation),
        "parameters": parameters,
    }
    return Outcome(
        metrics=metrics,
        health=[*checks, *health.falling_loss(curve, metrics), *learnt(metrics)],
        fit=done,
        flops_a_token=method.flops * (parameters - idle(policy.model)),
        formula=method.formula,
        curve=curve,
        clean=partial(clean, job.workdir),
    )


def _pairs(
    stage: PairsStage, rows: Sequence[preferences.Preference], seed: int
) -> dict[str, list[preferences.Pair]]:
    """Return the pairs to train on, by the stage's keys `pairs` and `problems`, and all held-out pairs."""
    assert stage.pairs is not None
    learnt_from = preferences.first(preferences.of_split(rows, "train"), stage.problems)
    return {
        "train": preferences.pairs(learnt_from, stage.pairs, seed),
        "validation": preferences.pairs(preferences.of_split(rows, "validation"), "all", seed),
    }


def _checks(
    pairs: Sequence[preferences.Pair],
    train: Sequence[TokenPair],
    validation: Sequence[TokenPair],
    policy: Policy,
) -> list[health.Check]:
    """Check, before training, all `pairs` as text, and `train` and `validation` as tokens.

    Returns the checks. Raises UserError at an error.
    """
    texts = {text for pair in pairs for text in (pair["prompt"], pair["chosen"], pair["rejected"])}
    checks = health.stop_at_errors([health.known_tokens(policy.tokenizer, sorted(texts), "pair")])
    longest = max(length(pair) for pair in (*train, *validation))
    return checks + health.stop_at_errors([health.context(longest, 0, positions(policy.model))])


def _ranked(
    policy: Any, reference: Any, train: Sequence[TokenPair], validation: Sequence[TokenPair], beta: float
) -> dict[str, float]:
    """Return metrics of how well the implicit reward ranks the pairs trained on, and held-out pairs."""
    every = max(1, len(train) // MEASURED)
    metrics: dict[str, float] = {}
    for split, pairs in (("train", train[::every]), ("validation", validation)):
        metrics |= implicit(_log_ratios(policy, reference, pairs), beta, split)
    if "accuracy/validation" in metrics:
        metrics["accuracy/gap"] = metrics["accuracy/train"] - metrics["accuracy/validation"]
    return metrics


def _log_ratios(policy: Any, reference: Any, pairs: Sequence[TokenPair]) -> dict[str, Tensor]:
    """Return log pi(y|x) - log pi_ref(y|x), in nats, of chosen and rejected completions, each (pairs,)."""
    prompts = [pair["prompt_ids"] for pair in pairs]
    return {
        name: sequence_logps(policy, prompts, replies) - sequence_logps(reference, prompts, replies)
        for name in ("chosen", "rejected")
        for replies in ([pair[f"{name}_ids"] for pair in pairs],)
    }


def implicit(ratios: Mapping[str, Tensor], beta: float, split: str) -> dict[str, float]:
    """Return metrics of how well the implicit reward ranks the pairs of a split; {} without pairs.

    `ratios`: log pi(y|x) - log pi_ref(y|x) of the chosen and of the rejected completions, each (pairs,). In
    the accuracy a tie counts half.
    """
    chosen, rejected = ratios["chosen"], ratios["rejected"]
    if not len(chosen):
        return {}
    gap = chosen - rejected
    right, tied = (gap > 0).double().mean(), (gap == 0).double().mean()
    return {
        f"accuracy/{split}": float(right + tied / 2),
        f"ties/{split}": float(tied),
        f"loss/{split}": float(softplus(-beta * gap).mean()),
        f"margin/{split}": beta * float(gap.mean()),
        f"logratio/chosen/{split}": float(chosen.mean()),
        f"logratio/rejected/{split}": float(rejected.mean()),
    }


def learnt(metrics: Mapping[str, float]) -> list[health.Check]:
    """Return the checks of what was learnt, for those metrics that were measured."""
    checks = []
    if (value := metrics.get("accuracy/validation")) is not None:
        text = f"the implicit reward ranks {value:.1%} of the held-out pairs as their labels do"
        text += f" (chance is {CHANCE:.0%})"
        checks.append(health.make_check("held_out", value > CHANCE, value, CHANCE, text))
    if (value := metrics.get("ties/train")) is not None:
        text = f"{value:.1%} of the pairs have equal implicit rewards"
        checks.append(health.make_check("ties", value <= TIED, value, TIED, text))
    if (value := metrics.get("logratio/chosen/train")) is not None:
        text = f"log-probability of the chosen completions went by {value:+.2f} nats"
        text += ": only the difference to the rejected is trained"
        checks.append(health.make_check("chosen_logp", value >= 0, value, 0.0, text))
    return checks
