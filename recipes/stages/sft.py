"""Stage `sft`: supervised fine-tuning of a policy on demonstrations, by TRL's SFTTrainer.

    python -m recipes.stages.sft --config '{"args": …}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json …

The demonstrations are the product of a stage such as `rejection_sampling`; on the right completions of the
policy itself this is offline rejection sampling fine-tuning (RFT; DeepSeekMath, arXiv 2402.03300, §5.2).
Without an input `data` they are what `task` names: a world, which writes them by `template` and `corpus`, or
a Hub dataset. Empty ones and conversations of several turns are counted and skipped. Loss on the completion
and its end of sequence alone. Every field of `args` goes to TRL's SFTConfig; `model_init_kwargs:
{attention_dropout: …}` is dropout of this stage alone.
"""

import copy
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from recipes.errors import UserError
from recipes.runtime import curves, files, health, provenance
from recipes.runtime.progress import Progress
from recipes.stages import cli

FORMULA = "6 x parameters x tokens of the documents (forward and backward)"


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Train and save the policy under `workdir`/final; curve.csv beside `out`."""
    from datasets import Dataset
    from trl import SFTConfig

    from recipes.data import demonstrations
    from recipes.models import language_model
    from recipes.models.packing import document
    from recipes.stages.arguments import arguments
    from recipes.trainers.fit import clean, fit
    from recipes.trainers.sft import SFT

    started = provenance.now()
    given = demonstrations.load(inputs["data"]) if "data" in inputs else demonstrations.of_task(config, seed)
    rows, skipped = demonstrations.usable(given)
    if not rows:
        raise UserError(f"none of {len(given)} demonstrations is usable ({told(skipped)}): nothing to learn")
    args = arguments(SFTConfig, config["args"], {"save_steps": 100}, workdir, seed)
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    model = language_model.load(source, **(args.model_init_kwargs or {}))
    generation = copy.deepcopy(model.generation_config)
    dropout = own_dropout(source, args.model_init_kwargs or {})
    args.model_init_kwargs = None  # TRL refuses them with a loaded model
    prompts, completions = ([row[name] for row in rows] for name in ("prompt", "completion"))
    # apart, as when sampled: no token may span prompt and completion
    replies = tokenizer(completions, add_special_tokens=False)["input_ids"]
    documents = [
        document(prompt, [*reply, tokenizer.eos_token_id])
        for prompt, reply in zip(tokenizer(prompts)["input_ids"], replies, strict=True)
    ]
    longest = max(len(one["input_ids"]) for one in documents)
    positions = getattr(model.config, "max_position_embeddings", None)
    window = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
    checks = health.stop_at_errors(
        [
            health.known_tokens(tokenizer, [*prompts, *completions], "demonstration"),
            health.document_context(longest, args.max_length, positions),
            enough(len(rows), window),
            whole(longest, args.max_length),
            *filled(len(given), skipped),
        ]
    )
    trainer = SFT(
        model=model,
        args=args,
        train_dataset=Dataset.from_list(documents),
        processing_class=tokenizer,
    )
    done = fit(trainer, progress)
    for name, rate in dropout.items():
        setattr(model.config, name, rate)
    language_model.save(model, tokenizer, workdir / "final", generation)

    curve = curves.rows(done.history)
    measured = curves.deterministic(curve)
    files.write(out.with_name("curve.csv"), curves.text(measured))
    parameters = model.num_parameters()
    scalars = {**curves.scalars(measured), "demonstrations": len(rows), "parameters": parameters}
    scalars |= {f"skipped/{why}": count for why, count in skipped.items()}
    return {
        "metrics": scalars,
        "health": [*checks, *learns(measured, scalars)],
        "provenance": provenance.record(started, done, 6 * parameters, FORMULA),
        "clean": partial(clean, workdir),
    }


def own_dropout(source: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The dropout rates of the model's own that `options` replace: it is saved with them."""
    names = [name for name in options if "dropout" in name]
    if not names:
        return {}
    from transformers import AutoConfig

    from recipes.models.language_model import folder_of

    config = AutoConfig.from_pretrained(folder_of(source))
    return {name: getattr(config, name) for name in names}


def enough(available: int, needed: int) -> health.Check:
    """An incomplete last batch of an epoch is left out, so with too few demonstrations there is none."""
    message = f"one step takes {needed} demonstrations, there are {available}"
    return health.check("enough_data", available >= needed, available, needed, message, "error")


def filled(given: int, skipped: Mapping[str, int]) -> list[health.Check]:
    """A warning for each kind of demonstration that is skipped; from empty ones a policy learns silence."""
    return [
        health.check(
            why, False, count, 0, f"{count} of {given} demonstrations are {why} and skipped", "warning"
        )
        for why, count in skipped.items()
    ]


def told(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {why}" for why, count in skipped.items())


def whole(longest: int, limit: int | None) -> health.Check:
    """TRL cuts what is longer than `max_length`, and says nothing."""
    message = f"the longest demonstration has {longest} tokens, max_length is {limit}"
    return health.check(
        "max_length", limit is None or longest <= limit, longest, limit or 0, message, "warning"
    )


def learns(curve: list[curves.Row], scalars: dict[str, float]) -> list[health.Check]:
    """Warns of a loss that rises from the first fifth of the steps to the last."""
    first, last = curves.first_fifth(curve, "loss"), scalars.get("last_fifth/loss")
    if first is None or last is None:
        return []
    message = f"loss went from {first:.3f} in the first fifth of the steps to {last:.3f} in the last"
    return [health.check("loss", last <= first, last, first, message, "warning")]


if __name__ == "__main__":
    sys.exit(cli.main("sft", run))
