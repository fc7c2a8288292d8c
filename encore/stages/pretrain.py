"""Stage `pretrain`: a base model from scratch, on a corpus that worlds write.

    python -m encore.stages pretrain --config '{"task": …, "template": …, "corpus": …, "model": …, …}' …

The loss is on the completion and its end of sequence only. The digits of a random question cannot be
predicted, and their gradients drown the rest: after 160 steps on world chain (0.5M parameters), accuracy
within scratchpads was 0.07 with the loss on all tokens and 0.27 with the loss on completions.
"""

import copy
from functools import partial

from transformers import TrainingArguments

from encore import worlds
from encore.data import corpora
from encore.data.token_ids import prompt_ids
from encore.learning.fit import clean, fit
from encore.learning.language_model import LanguageModel
from encore.models import language_model
from encore.models.experts import idle
from encore.models.liger import fused
from encore.models.packing import collate, document
from encore.recipe.base import present
from encore.recipe.kinds import PretrainStage
from encore.runtime import curves, health
from encore.stages.job import Job
from encore.stages.outcome import Outcome
from encore.stages.trainer_config import arguments

FORMULA = "6 x parameters x tokens of the documents (forward and backward)"


def run(stage: PretrainStage, job: Job) -> Outcome:
    """Train the base model and save it."""
    task, corpus = present(stage.task), present(stage.corpus)
    texts = corpora.documents(task, present(stage.template), corpus, job.seed)
    tokenizer = worlds.tokenizer(corpora.worlds_of(task, corpus))
    model = language_model.build(present(stage.model), tokenizer, job.seed)
    if stage.args.use_liger_kernel:
        fused(model)
    generation = copy.deepcopy(model.generation_config)
    prompts = prompt_ids([prompt for prompt, _ in texts], tokenizer)
    replies = tokenizer([reply + tokenizer.eos_token for _, reply in texts])["input_ids"]
    documents = [document(*pair) for pair in zip(prompts, replies, strict=True)]
    longest = max(len(tokens["input_ids"]) for tokens in documents)
    some = ["".join(text) for text in texts[:: max(1, len(texts) // 1000)]]  # texts from every task
    checks = health.stop_at_errors(
        [
            health.known_tokens(tokenizer, some, "document"),
            health.context(longest, 0, model.config.max_position_embeddings),
        ]
    )
    args = arguments(TrainingArguments, stage, job.workdir, job.seed, save_steps=100, logging_steps=10)
    trainer = LanguageModel(
        model=model,
        args=args,
        train_dataset=documents,
        data_collator=partial(collate, pad=tokenizer.pad_token_id),
    )
    trainer.padding = tokenizer.pad_token_id
    saved = {"tokenizer": tokenizer, "generation": generation, "dtype": stage.saved_dtype}
    every, keep = stage.evaluate_every, partial(language_model.keep, **saved)
    done = fit(trainer, job.progress, (every, keep) if every else None)
    language_model.save(model, folder=job.workdir / "final", **saved)

    curve = curves.deterministic(curves.rows(done.history))
    parameters = model.num_parameters()
    return Outcome(
        metrics={**curves.scalars(curve), "parameters": parameters},
        health=checks,
        fit=done,
        flops_a_token=6 * (parameters - idle(model)),
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, job.workdir),
    )
