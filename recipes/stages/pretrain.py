"""Stage `pretrain`: a base model from nothing, on a corpus that worlds write.

    python -m recipes.stages.pretrain --config '{"task": …, "template": …, "corpus": …, "model": …, …}' …

Loss on the completion and its end of sequence alone. The digits of a random question cannot be predicted,
and their gradients drown the rest: 160 steps of world chain (0.5M parameters) gave an accuracy of 0.07 within
scratchpads with loss on all tokens, and of 0.27 with loss on completions.
"""

import copy
import sys
from functools import partial
from pathlib import Path
from typing import Any

from recipes.runtime import curves, files, health, provenance
from recipes.runtime.progress import Progress
from recipes.stages import cli

FORMULA = "6 x parameters x tokens of the documents (forward and backward)"


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Train and save the base model under `workdir`/final; curve.csv beside `out`."""
    from transformers import TrainingArguments

    from recipes import worlds
    from recipes.data import corpora
    from recipes.models import language_model
    from recipes.models.packing import collate, document
    from recipes.stages.arguments import arguments
    from recipes.trainers.fit import clean, fit
    from recipes.trainers.language_model import LanguageModel

    started = provenance.now()
    texts = corpora.documents(config, seed)
    tokenizer = worlds.tokenizer(corpora.worlds_of(config))
    model = language_model.build(config["model"], tokenizer, seed)
    generation = copy.deepcopy(model.generation_config)
    prompts = tokenizer([prompt for prompt, _ in texts])["input_ids"]
    replies = tokenizer([reply + tokenizer.eos_token for _, reply in texts])["input_ids"]
    documents = [document(*pair) for pair in zip(prompts, replies, strict=True)]
    longest = max(len(one["input_ids"]) for one in documents)
    some = ["".join(text) for text in texts[:: max(1, len(texts) // 1000)]]  # of every task
    checks = health.stop_at_errors(
        [
            health.known_tokens(tokenizer, some, "document"),
            health.context(longest, 0, model.config.max_position_embeddings),
        ]
    )
    args = arguments(
        TrainingArguments, config["args"], {"save_steps": 100, "logging_steps": 10}, workdir, seed
    )
    trainer = LanguageModel(
        model=model,
        args=args,
        train_dataset=documents,
        data_collator=partial(collate, pad=tokenizer.pad_token_id),
    )
    trainer.padding = tokenizer.pad_token_id
    done = fit(trainer, progress)
    language_model.save(model, tokenizer, workdir / "final", generation)

    curve = curves.rows(done.history)
    files.write(out.with_name("curve.csv"), curves.text(curves.deterministic(curve)))
    parameters = model.num_parameters()
    return {
        "metrics": {**curves.scalars(curves.deterministic(curve)), "parameters": parameters},
        "health": checks,
        "provenance": provenance.record(started, done, 6 * parameters, FORMULA),
        "clean": partial(clean, workdir),
    }


if __name__ == "__main__":
    sys.exit(cli.main("pretrain", run))
