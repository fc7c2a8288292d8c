"""Stage `sft`: supervised fine-tuning of a policy on demonstrations, by TRL's SFTTrainer.

    python -m encore.stages sft --config '{"args": …}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json …

The demonstrations come from a stage such as `rejection_sampling`: trained on its own right completions, the
policy learns by offline rejection sampling fine-tuning (RFT; DeepSeekMath, arXiv 2402.03300, §5.2). Without
an input `data`, `task` names them: a world, which writes them by `template` and `corpus`, or a Hub dataset.
`also` mixes in more demonstrations, as stage 3 of DeepSeek-R1 does with general data (arXiv 2501.12948,
§2.3.3):

    also: {general: {task: {world: preferences}, template: …, corpus: {mixture: {good: 1.0}}, share: 0.25}}

All demonstrations are one set, in a new random order for each epoch; metrics.json has the number from each
source. With `chat` every reply of a conversation is learnt (encore/data/chat.py). Three kinds of
demonstrations are skipped and counted: empty ones, conversations of several turns without `chat`, and those
longer than `max_length`, which TRL would cut, so that a policy would learn texts without an end.

The loss is on completions and their ends of sequence, and on the prompts as well if
`args.completion_only_loss` is false. Every field of `args` goes to TRL's SFTConfig. Dropout that
`model_init_kwargs` sets, such as `{attention_dropout: …}`, holds for this stage only: the model is saved with
the rates it came with.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from datasets import Dataset
from trl import SFTConfig

from encore.data import demonstrations
from encore.data.decontamination import contaminated
from encore.data.demonstrations import Demonstration
from encore.data.prompts import asked, left_out
from encore.data.token_ids import following_ids, prompt_ids, reply_ids
from encore.errors import UserError
from encore.learning.fit import clean
from encore.learning.sft import SFT
from encore.models import lora
from encore.models.experts import idle
from encore.models.language_model import Source, configuration
from encore.models.packing import dialogue
from encore.recipe.kinds import SftStage
from encore.runtime import curves, health
from encore.stages.job import DataSets, Job
from encore.stages.outcome import Outcome
from encore.stages.policy import Policy, load_policy, loading_options, locate_policy, positions
from encore.stages.trainer_config import arguments, batch_size

LONG = "long"  # reason to skip a document that is too long
FORMULA = "6 x parameters x tokens of the documents (forward and backward)"


def run(stage: SftStage, job: Job) -> Outcome:
    """Train the policy and save it."""
    tokenizer = locate_policy(stage, job.inputs)[1] if stage.by_chat else None
    sources = demonstrations.sources(stage, job.inputs.get("data"), job.seed, tokenizer)
    sources, clean_checks = _clean(sources, job.evaluated)
    total, skipped = sum(map(len, sources.values())), Counter[str]()
    for name, some in sources.items():
        sources[name], faults = demonstrations.usable(some)
        skipped.update(faults)
    rows = [row for some in sources.values() for row in some]
    _require_some(rows, total, skipped)
    args = arguments(SFTConfig, stage, job.workdir, job.seed, save_steps=100)
    options = loading_options(stage, args)
    policy = load_policy(stage, job.inputs, **options)
    whole = args.completion_only_loss is False
    learnt = {
        name: documents(some, policy.tokenizer, whole, args.max_length) for name, some in sources.items()
    }
    data = [document for some in learnt.values() for document in some]
    if len(data) < len(rows):
        skipped[LONG] = len(rows) - len(data)
    _require_some(data, total, skipped)
    checks = [
        *_checks(rows, data, policy, args),
        *none_skipped(total, skipped, args.max_length),
        *clean_checks,
    ]
    trainer = SFT(
        model=policy.model,
        args=args,
        train_dataset=Dataset.from_list(data),
        processing_class=policy.tokenizer,
        peft_config=lora.adapters(stage.lora, policy.model, job.seed),
    )
    done = policy.train(trainer, stage, job)
    for name, rate in _own_dropout(policy.source, options).items():
        setattr(policy.model.config, name, rate)
    policy.save(job.workdir)

    curve = curves.deterministic(curves.rows(done.history))
    parameters = lora.parameters(policy.model)
    metrics = {**curves.scalars(curve), "demonstrations": len(data), "parameters": parameters}
    metrics |= {f"skipped/{reason}": count for reason, count in skipped.items()}
    if stage.also:
        metrics |= {f"demonstrations/{name}": len(some) for name, some in learnt.items()}
    return Outcome(
        metrics=metrics,
        health=[*checks, *health.falling_loss(curve, metrics)],
        fit=done,
        flops_a_token=6 * (parameters - idle(policy.model)),
        formula=FORMULA,
        curve=curve,
        clean=partial(clean, job.workdir),
    )


def _checks(
    rows: Sequence[Demonstration], data: Sequence[Mapping[str, list[int]]], policy: Policy, args: Any
) -> list[health.Check]:
    """Return the checks before training, of demonstrations and their documents.

    Raises UserError at an error.
    """
    texts = [text for row in rows for exchange in demonstrations.exchanges(row) for text in exchange]
    longest = max(len(document["input_ids"]) for document in data)
    return health.stop_at_errors(
        [
            health.known_tokens(policy.tokenizer, texts, "demonstration"),
            health.context(longest, 0, positions(policy.model)),
            health.enough(len(data), batch_size(args), "demonstrations"),
        ]
    )


def _clean(
    sources: dict[str, list[Demonstration]], evaluated: DataSets
) -> tuple[dict[str, list[Demonstration]], list[health.Check]]:
    """Return the demonstrations whose questions no evaluation asks, and a check that counts the others.

    `sources`: source -> its demonstrations. `evaluated`: the data sets of the evaluations.
    """
    if not evaluated:
        return sources, []
    questions = asked(evaluated)
    kept = {}
    for name, rows in sources.items():
        bad = {*contaminated([row.get("question", row["prompt"]) for row in rows], questions)}
        kept[name] = [row for i, row in enumerate(rows) if i not in bad]
    total, left = (sum(map(len, of_source.values())) for of_source in (sources, kept))
    return kept, [left_out(total - left, total, evaluated)]


def documents(
    rows: Sequence[Demonstration], tokenizer: Any, whole: bool, max_length: int | None = None
) -> list[dict[str, list[int]]]:
    """Return `input_ids` and `labels` of each demonstration that has at most `max_length` tokens.

    With `whole` the loss is on the prompts as well.
    """
    exchanges = [demonstrations.exchanges(row) for row in rows]
    firsts = iter(prompt_ids([exchange[0][0] for exchange in exchanges], tokenizer))
    later = iter(following_ids([prompt for exchange in exchanges for prompt, _ in exchange[1:]], tokenizer))
    texts = [reply for exchange in exchanges for _, reply in exchange]
    replies = iter(reply_ids(texts, [False] * len(texts), tokenizer))
    made = [
        dialogue([(next(later if place else firsts), next(replies)) for place in range(len(exchange))])
        for exchange in exchanges
    ]
    return [
        {"input_ids": exchange["input_ids"], "labels": exchange["input_ids" if whole else "labels"]}
        for exchange in made
        if max_length is None or len(exchange["input_ids"]) <= max_length
    ]


def _require_some(left: Sequence[Any], total: int, skipped: Mapping[str, int]) -> None:
    """Raise UserError unless some of the `total` demonstrations are left."""
    if not left:
        why = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
        raise UserError(f"none of {total} demonstrations is usable ({why}): nothing to learn")


def _own_dropout(source: Source, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checkpoint's own rates of the kinds of dropout that `options` set for training."""
    names = [name for name in options if "dropout" in name]
    if not names:
        return {}
    config = configuration(source)
    return {name: getattr(config, name) for name in names}


def none_skipped(total: int, skipped: Mapping[str, int], max_length: int | None = None) -> list[health.Check]:
    """Return a warning for each reason for which demonstrations were skipped, with their number."""
    words = {LONG: f"longer than max_length {max_length}"}
    return [
        health.make_check(
            reason,
            False,
            count,
            0,
            f"{count} of {total} demonstrations are {words.get(reason, reason)} and skipped",
        )
        for reason, count in skipped.items()
    ]
