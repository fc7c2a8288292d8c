"""Stage `dpo`: direct preference optimisation of a policy, by TRL's DPOTrainer.

    python -m recipes.stages.dpo --config '{"args": …, "pairs": "all"}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json …

The pairs come from the product of a stage such as `label`. The reference model is the policy as it starts,
or the input `reference`. Every field of `args` goes to TRL's DPOConfig. After training, the implicit reward
beta log pi/pi_ref is measured as a reward model is: by how often it puts the chosen completion above the
rejected one, on pairs trained on and on pairs held out.
"""

import copy
import gc
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from recipes.errors import UserError
from recipes.runtime import curves, files, health, provenance
from recipes.runtime.progress import Progress
from recipes.stages import cli

FORMULA = "parameters x tokens of prompts and completions x (6 policy + 2 reference)"
MEASURED = 2048  # pairs trained on, evenly spread, whose implicit reward is measured at the end
CHANCE = 0.5
TIED = 0.01  # Above a hundredth, the policy has not moved, or the completions of a pair are the same.


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Train and save the policy under `workdir`/final; curve.csv beside `out`."""
    from datasets import Dataset
    from trl import DPOConfig

    from recipes.data import preferences
    from recipes.models import language_model
    from recipes.models.language_model import disable_dropout
    from recipes.stages.arguments import arguments
    from recipes.stages.sft import learns
    from recipes.trainers.dpo import DPO, length, tokenise
    from recipes.trainers.fit import clean, fit

    started = provenance.now()
    rows, skipped = preferences.usable(preferences.load(inputs["data"]))
    checks = health.stop_at_errors(preferences.checks(rows, skipped))
    pairs = {
        "train": preferences.pairs(preferences.of_split(rows, "train"), config["pairs"], seed),
        "validation": preferences.pairs(preferences.of_split(rows, "validation"), "all", seed),
    }
    args = arguments(DPOConfig, config["args"], {"save_steps": 100}, workdir, seed)
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    anchor = language_model.locate(None, inputs["reference"]) if "reference" in inputs else source
    tokenizer = language_model.load_tokenizer(source)
    names = (f"the reference {anchor.place}", f"the policy {source.place}")
    language_model.same_tokenizer(language_model.load_tokenizer(anchor), tokenizer, names)
    documents = {name: tokenise(found, tokenizer) if found else [] for name, found in pairs.items()}
    checks += health.stop_at_errors(
        [
            enough(len(documents["train"]), args),
            known(tokenizer, [pair for found in pairs.values() for pair in found]),
        ]
    )
    options = args.model_init_kwargs or {}
    model, reference = language_model.load(source, **options), language_model.load(anchor, **options)
    if args.disable_dropout:
        disable_dropout(model)
    generation = copy.deepcopy(model.generation_config)
    args.model_init_kwargs = None  # TRL refuses them with a loaded model
    longest = max(length(pair) for found in documents.values() for pair in found)
    positions = getattr(model.config, "max_position_embeddings", None)
    checks += health.stop_at_errors(
        [
            health.document_context(longest, args.max_length, positions),
            whole(longest, args.max_length),
        ]
    )
    if args.eval_strategy != "no" and not documents["validation"]:
        raise UserError(f"args.eval_strategy: {args.eval_strategy.value}, but there are no validation pairs")
    trainer = DPO(
        model=model,
        ref_model=reference.requires_grad_(False),
        args=args,
        train_dataset=Dataset.from_list(documents["train"]),
        eval_dataset=Dataset.from_list(documents["validation"]) if args.eval_strategy != "no" else None,
        processing_class=tokenizer,
    )
    if args.precompute_ref_log_probs:  # they are in the data now
        trainer.ref_model = None
        reference.to("cpu")
    done = fit(trainer, progress)
    language_model.save(model, tokenizer, workdir / "final", generation)
    del trainer
    gc.collect()  # the optimizer's state, to have room for the reference
    reference.to(model.device)

    curve = curves.deterministic(curves.rows(done.history))
    files.write(out.with_name("curve.csv"), curves.text(curve))
    every = max(1, len(documents["train"]) // MEASURED)
    ranked: dict[str, float] = {}
    for name, found in (("train", documents["train"][::every]), ("validation", documents["validation"])):
        ranked |= implicit(log_ratios(model, reference, found), args.beta, name)
    if "accuracy/validation" in ranked:
        ranked["accuracy/gap"] = ranked["accuracy/train"] - ranked["accuracy/validation"]
    parameters = model.num_parameters()
    counts: dict[str, float] = {"pairs": len(pairs["train"]), "pairs/validation": len(pairs["validation"])}
    counts |= {**preferences.metrics(skipped), "parameters": parameters}
    scalars = {**curves.scalars(curve), **ranked, **counts}
    return {
        "metrics": scalars,
        "health": [*checks, *learns(curve, scalars), *learnt(scalars)],
        "provenance": provenance.record(started, done, 8 * parameters, FORMULA),
        "clean": partial(clean, workdir),
    }


def log_ratios(policy: Any, reference: Any, pairs: Sequence[Mapping[str, list[int]]]) -> dict[str, Any]:
    """log pi(y|x) - log pi_ref(y|x), in nats, of the `chosen` and the `rejected` completions: (pairs,)."""
    from recipes.models.logprobs import sequence_logps

    prompts = [pair["prompt_ids"] for pair in pairs]
    return {
        name: sequence_logps(policy, prompts, replies) - sequence_logps(reference, prompts, replies)
        for name in ("chosen", "rejected")
        for replies in ([pair[f"{name}_ids"] for pair in pairs],)
    }


def implicit(ratios: Mapping[str, Any], beta: float, split: str) -> dict[str, float]:
    """How the implicit reward ranks the pairs of a split, ties counted half; nothing where there are none."""
    from torch.nn.functional import softplus

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


def enough(available: int, args: Any) -> health.Check:
    """An incomplete last batch of an epoch is left out, so with too few pairs there is none."""
    needed = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
    message = f"one step takes {needed} pairs, there are {available}"
    return health.check("enough_data", available >= needed, available, needed, message, "error")


def known(tokenizer: Any, pairs: Sequence[Mapping[str, Any]]) -> health.Check:
    """The tokenizer knows every token of the pairs."""
    texts = {pair[name] for pair in pairs for name in ("prompt", "chosen", "rejected")}
    return health.known_tokens(tokenizer, sorted(texts), "pair")


def whole(longest: int, limit: int | None) -> health.Check:
    """TRL cuts what is longer than `max_length`, and says nothing."""
    message = f"the longest completion with its prompt has {longest} tokens, max_length is {limit}"
    return health.check(
        "max_length", limit is None or longest <= limit, longest, limit or 0, message, "warning"
    )


def learnt(scalars: Mapping[str, float]) -> list[health.Check]:
    """Warnings about what was learnt; what was not measured is not checked."""
    found = []

    def warn(name: str, ok: bool, value: float, limit: float, text: str) -> None:
        found.append(health.check(name, ok, value, limit, text, "warning"))

    if (value := scalars.get("accuracy/validation")) is not None:
        text = f"the implicit reward ranks {value:.1%} of the held-out pairs as their labels do"
        warn("held_out", value > CHANCE, value, CHANCE, f"{text} (chance is {CHANCE:.0%})")
    if (value := scalars.get("ties/train")) is not None:
        warn("ties", value <= TIED, value, TIED, f"{value:.1%} of the pairs have equal implicit rewards")
    if (value := scalars.get("logratio/chosen/train")) is not None:
        text = f"log-probability of the chosen completions went by {value:+.2f} nats"
        warn("chosen_logp", value >= 0, value, 0.0, f"{text}: only the difference to the rejected is trained")
    return found


if __name__ == "__main__":
    sys.exit(cli.main("dpo", run))
