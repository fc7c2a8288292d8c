"""Stage `dpo`: direct preference optimisation of a policy, by TRL's DPOTrainer.

    python -m encore.stages dpo --config '{"args": …, "pairs": "all"}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json …

The pairs come from a stage such as `label`. The reference model is the input `reference`, or the policy as it
starts. Every field of `args` goes to TRL's DPOConfig. After training, the implicit reward beta log pi/pi_ref
is measured like a reward model: how often does it put the chosen completion above the rejected one, on pairs
trained on and on held-out pairs?
"""

import gc
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from datasets import Dataset
from torch import Tensor
from torch.nn.functional import softplus
from trl import DPOConfig

from encore.data import preferences
from encore.learning.dpo import DPO, TokenPair, length, tokenise
from encore.learning.fit import clean, fit
from encore.models import lora
from encore.models.experts import idle
from encore.models.language_model import disable_dropout
from encore.models.logprobs import sequence_logps
from encore.models.quantized import loading
from encore.runtime import curves, health
from encore.runtime.progress import Progress
from encore.stages.outcome import Outcome
from encore.stages.policy import load_policy, load_reference, positions, take_model_options
from encore.stages.trainer_config import arguments, batch_size, check_evaluation

FORMULA = "parameters x tokens of prompts and completions x (6 policy + 2 reference)"
MEASURED = 2048  # pairs trained on, evenly spread, whose implicit reward is measured at the end
CHANCE = 0.5
TIED = 0.01  # Above a hundredth, the policy has not moved, or the completions of a pair are the same.


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> Outcome:
    """Train the policy and save it in `workdir`/final."""
    rows, skipped = preferences.usable(preferences.load(inputs["data"]))
    checks = health.stop_at_errors(preferences.checks(rows, skipped))
    pairs = {
        "train": preferences.pairs(preferences.of_split(rows, "train"), config["pairs"], seed),
        "validation": preferences.pairs(preferences.of_split(rows, "validation"), "all", seed),
    }
    args = arguments(DPOConfig, config, {"save_steps": 100}, workdir, seed)
    options = loading(config.get("lora"), args, take_model_options(args))
    policy = load_policy(config, inputs, **options)
    reference = load_reference(policy, inputs, **options)
    model, tokenizer = policy.model, policy.tokenizer
    if args.disable_dropout:
        disable_dropout(model)
    tokenised: dict[str, list[TokenPair]] = {
        split: tokenise(of_split, tokenizer) if of_split else [] for split, of_split in pairs.items()
    }
    train, validation = tokenised["train"], tokenised["validation"]
    texts = {
        pair[name]
        for of_split in pairs.values()
        for pair in of_split
        for name in ("prompt", "chosen", "rejected")
    }
    checks += health.stop_at_errors(
        [
            health.enough(len(train), batch_size(args), "pairs"),
            health.known_tokens(tokenizer, sorted(texts), "pair"),
        ]
    )
    longest = max(length(pair) for pair in (*train, *validation))
    checks += health.stop_at_errors(
        [
            health.document_context(longest, args.max_length, positions(model)),
            health.uncut(longest, args.max_length, "completion with its prompt"),
        ]
    )
    check_evaluation(args, len(validation), "validation pairs")
    trainer = DPO(
        model=model,
        ref_model=reference.requires_grad_(False),
        args=args,
        train_dataset=Dataset.from_list(train),
        eval_dataset=Dataset.from_list(validation) if args.eval_strategy != "no" else None,
        processing_class=tokenizer,
        peft_config=lora.adapters(config.get("lora"), model, seed),
    )
    if args.precompute_ref_log_probs:  # they are in the data now
        trainer.ref_model = None
        reference.to("cpu")
    done = fit(trainer, progress, policy.keep(config))
    policy.model = model = lora.merged(trainer.model, config.get("saved_dtype"))
    policy.save(workdir)
    del trainer
    gc.collect()  # frees the optimizer's state, to have room for the reference
    reference.to(model.device)

    curve = curves.deterministic(curves.rows(done.history))
    every = max(1, len(train) // MEASURED)
    ranked: dict[str, float] = {}
    for split, of_split in (("train", train[::every]), ("validation", validation)):
        ranked |= implicit(_log_ratios(model, reference, of_split), args.beta, split)
    if "accuracy/validation" in ranked:
        ranked["accuracy/gap"] = ranked["accuracy/train"] - ranked["accuracy/validation"]
    parameters = lora.parameters(model)
    metrics: dict[str, float] = {
        **curves.scalars(curve),
        **ranked,
        **preferences.metrics(skipped),
        "pairs": len(train),
        "pairs/validation": len(validation),
        "parameters": parameters,
    }
    return Outcome(
        metrics=metrics,
        health=[*checks, *health.falling_loss(curve, metrics), *learnt(metrics)],
        fit=done,
        flops_a_token=8 * (parameters - idle(model)),
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, workdir),
    )


def _log_ratios(policy: Any, reference: Any, pairs: Sequence[TokenPair]) -> dict[str, Tensor]:
    """log pi(y|x) - log pi_ref(y|x), in nats, of the `chosen` and the `rejected` completions: (pairs,)."""
    prompts = [pair["prompt_ids"] for pair in pairs]
    return {
        name: sequence_logps(policy, prompts, replies) - sequence_logps(reference, prompts, replies)
        for name in ("chosen", "rejected")
        for replies in ([pair[f"{name}_ids"] for pair in pairs],)
    }


def implicit(ratios: Mapping[str, Tensor], beta: float, split: str) -> dict[str, float]:
    """How the implicit reward ranks the pairs of a split, a tie counting half; nothing without pairs."""
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
    """Warnings about what was learnt; what was not measured is not checked."""
    checks = []
    if (value := metrics.get("accuracy/validation")) is not None:
        text = f"the implicit reward ranks {value:.1%} of the held-out pairs as their labels do"
        text += f" (chance is {CHANCE:.0%})"
        checks.append(health.check("held_out", value > CHANCE, value, CHANCE, text))
    if (value := metrics.get("ties/train")) is not None:
        text = f"{value:.1%} of the pairs have equal implicit rewards"
        checks.append(health.check("ties", value <= TIED, value, TIED, text))
    if (value := metrics.get("logratio/chosen/train")) is not None:
        text = f"log-probability of the chosen completions went by {value:+.2f} nats"
        text += ": only the difference to the rejected is trained"
        checks.append(health.check("chosen_logp", value >= 0, value, 0.0, text))
    return checks
