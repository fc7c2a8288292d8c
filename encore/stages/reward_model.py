"""Stage `reward_model`: a reward model, or an ensemble of them, from comparisons, by TRL's RewardTrainer.

    python -m encore.stages reward_model --config '{"args": …, "comparisons": "grouped"}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json \\
        --input demonstrations=results/…/metrics.json …

The comparisons come from a stage `label`. Each of `members` starts from the policy with a head of its own,
and sees the comparisons in an order of its own. After training, a bias sets the mean reward of demonstrations
to 0 (InstructGPT §3.5; Stiennon et al. 2020, App. B.1). These are an input, or what the key `demonstrations`
names in the way a stage `sft` does; without any, the responses trained on take their place. With `normalize:
unit`, rewards are also divided by their standard deviation over the responses trained on. Every field of
`args` goes to TRL's RewardConfig; its `eval_strategy` measures the held-out comparisons during training.
calibration.csv is about the held-out comparisons at the end. With `labels` in place of `comparisons` it is a
process or an outcome reward model (encore/stages/step_reward.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from trl import RewardConfig

from encore.data import demonstrations, preferences, token_ids
from encore.data.token_ids import Row, Sequences
from encore.errors import UserError
from encore.learning.fit import clean, fit
from encore.learning.reward_model import Reward, grouped, shuffled
from encore.models import lora, reward_model
from encore.models.experts import idle
from encore.models.quantized import loading
from encore.models.reward_model import HEAD, from_policy
from encore.rewards import quality
from encore.runtime import curves, files, health
from encore.runtime.progress import Progress
from encore.runtime.provenance import Fit
from encore.stages import step_reward
from encore.stages.outcome import Outcome
from encore.stages.policy import locate_policy, positions, take_model_options
from encore.stages.trainer_config import arguments, batch_size, check_evaluation

FORMULA = "6 x parameters x tokens of prompts and responses (forward and backward), of all members"
MEMBER_STRIDE = 10_007  # between the seeds of two members
MEASURED = 1024  # prompts trained on, evenly spread, whose comparisons are measured at the end
SIGMAS = 2.0  # a held-out accuracy within so many standard errors of a half may be chance
EVALUATED = {"eval_accuracy": "accuracy/validation", "eval_loss": "loss/validation"}
ARRANGED = {"grouped": (grouped, "prompts"), "shuffled": (shuffled, "pairs")}  # and what an element is


@dataclass(frozen=True)
class Split:
    """Comparisons to train on or to measure, a row a prompt, with the token ids of their responses."""

    rows: list[Row]
    sequences: list[Sequences]

    @property
    def flat(self) -> Sequences:
        """The token ids of all responses, one after another."""
        return [ids for of_row in self.sequences for ids in of_row]


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> Outcome:
    """Train the members and save them in `workdir`/final; calibration.csv beside `out`."""
    if "labels" in config:
        return step_reward.run(config, inputs, seed, workdir, progress)
    rows, skipped = preferences.usable(preferences.load(inputs["data"]))
    checks = health.stop_at_errors(preferences.checks(rows, skipped))
    source, tokenizer = locate_policy(config, inputs)
    folders = [workdir / f"member{number}" for number in range(config.get("members", 1))]
    args = [
        arguments(RewardConfig, config, {"save_steps": 100}, folder, seed + MEMBER_STRIDE * number)
        for number, folder in enumerate(folders)
    ]
    for number, one in enumerate(args):
        one.run_name = f"{one.run_name}/member{number}" if one.run_name and len(args) > 1 else one.run_name
    limit = args[0].max_length
    splits = {}
    for name in preferences.SPLITS:
        of_split = preferences.of_split(rows, name)
        splits[name] = Split(*token_ids.fitting(of_split, token_ids.tokenised(of_split, tokenizer), limit))
        skipped["long"] = skipped.get("long", 0) + len(of_split) - len(splits[name].rows)
    splits["train"] = first(splits["train"], config.get("problems"))
    shown: list[demonstrations.Demonstration] = []
    if "demonstrations" in inputs:
        shown = demonstrations.load(inputs["demonstrations"])
    elif "demonstrations" in config:
        shown = demonstrations.of_task(config["demonstrations"], seed, tokenizer)
    shown, unusable = demonstrations.usable(shown)
    skipped |= {f"demonstrations/{reason}": count for reason, count in unusable.items()}
    checks += _check_data(splits, shown, skipped["long"], args[0], tokenizer)

    every = max(1, len(splits["train"].rows) // MEASURED)
    sample = Split(splits["train"].rows[::every], splits["train"].sequences[::every])
    scored = {"train": sample.flat, "validation": splits["validation"].flat}
    scored["demonstrations"] = demonstration_ids(shown, tokenizer, limit)
    raw: dict[str, list[np.ndarray]] = {name: [] for name in scored}  # of each member (sequences,)
    fits: list[Fit] = []
    partly = reward_model.begin(workdir / "final")
    for number, member_args in enumerate(args):
        if len(args) > 1:
            progress.say(f"member {number + 1} of {len(args)}")
        options = loading(config.get("lora"), member_args, take_model_options(member_args))
        model = from_policy(source, tokenizer, member_args.seed, **options)
        if not fits:
            longest = max(map(len, [*splits["train"].flat, *scored["validation"], *scored["demonstrations"]]))
            checks += health.stop_at_errors([health.context(longest, 0, positions(model))])
        adapters = lora.adapters(config.get("lora"), model, member_args.seed, HEAD)
        done, model = train(model, tokenizer, member_args, splits, config["comparisons"], adapters, progress)
        fits.append(done)
        for name, sequences in scored.items():
            raw[name].append(reward_model.read(model, sequences).double().numpy())
        parameters = lora.parameters(model)
        reward_model.add(partly, number, model)
    bias, scale = _normalised(raw, bool(scored["demonstrations"]), config.get("normalize", "mean"))
    reward_model.finish(partly, tokenizer, bias, scale, workdir / "final")

    curve = curves.deterministic(mean_curve([curves.rows(map(renamed, done.history)) for done in fits]))
    held_out, unit = splits["validation"], float(np.mean(scale))
    measured = {  # as the final rewards, but on the scale of training, where a gap is a difference of logits
        name: [
            quality.measured(split.rows, split.sequences, rewards * unit / own)
            for rewards, own in zip(raw[name], scale, strict=True)
        ]
        for name, split in (("train", sample), ("validation", held_out))
    }
    measures, calibration = quality.report(measured)
    files.write(out.with_name("calibration.csv"), quality.text(calibration))
    metrics: dict[str, float] = {
        **curves.scalars(curve),
        **measures,
        **quality.spread(raw, bias, scale),
        **{f"skipped/{reason}": count for reason, count in skipped.items()},
        **{f"prompts/{name}": len(split.rows) for name, split in splits.items()},
        "pairs/train": sum(len(preferences.better_worse(row)) for row in splits["train"].rows),
        "pairs/validation": sum(len(preferences.better_worse(row)) for row in held_out.rows),
        "demonstrations": len(scored["demonstrations"]),
        "members": len(args),
        "parameters": parameters,
    }
    return Outcome(
        metrics=metrics,
        health=checks + above_chance(metrics),
        fit=total(fits),
        flops_a_token=6 * (parameters - idle(model)),
        formula=FORMULA,
        curve=curve,
        clean=lambda: _clean_all(folders),
    )


def train(
    model: Any,
    tokenizer: Any,
    args: Any,
    splits: Mapping[str, Split],
    arrangement: str,
    adapters: Any,
    progress: Progress,
) -> tuple[Fit, Any]:
    """Train `model`, on elements that are prompts (`grouped`) or single pairs (`shuffled`), and return it.

    `adapters`: None, or a peft configuration; they are trained, with the head, and added to the weights.
    """
    arrange, what = ARRANGED[arrangement]
    data = {
        name: Dataset.from_list(
            [
                element
                for row, sequences in zip(split.rows, split.sequences, strict=True)
                for element in (arrange if name == "train" else grouped)(
                    sequences, preferences.better_worse(row)
                )
            ]
        )
        for name, split in splits.items()
    }
    health.stop_at_errors([health.enough(len(data["train"]), batch_size(args), what)])
    trainer = Reward(
        model,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data["validation"] if args.eval_strategy != "no" else None,
        processing_class=tokenizer,
        peft_config=adapters,
    )
    done = fit(trainer, progress)
    return done, lora.merged(trainer.model)


def first(split: Split, problems: int | None) -> Split:
    """The comparisons of the first so many prompts. Raises UserError where there are fewer."""
    if problems is not None and problems > len(split.rows):
        raise UserError(f"problems: {problems} asked, but there are {len(split.rows)} prompts to train on")
    return Split(split.rows[:problems], split.sequences[:problems])


def demonstration_ids(rows: Sequence[Row], tokenizer: Any, max_length: int | None) -> Sequences:
    """Token ids of each demonstration: prompt, completion, end of sequence. Longer ones are left out.

    Raises UserError where there are demonstrations, and none is short enough.
    """
    like = [{"prompt": row["prompt"], "responses": [row["completion"]], "truncated": [False]} for row in rows]
    _, sequences = token_ids.fitting(like, token_ids.tokenised(like, tokenizer), max_length)
    if rows and not sequences:
        raise UserError(
            f"args.max_length: all {len(rows)} demonstrations are longer than {max_length} tokens"
        )
    return Split([], sequences).flat


def _normalised(
    raw: Mapping[str, Sequence[np.ndarray]], shown: bool, normalize: str
) -> tuple[list[float], list[float]]:
    """Bias and scale of each member."""
    centred = raw["demonstrations" if shown else "train"]
    scale = [max(float(values.std()), 1e-8) if normalize == "unit" else 1.0 for values in raw["train"]]
    return [float(values.mean()) for values in centred], scale


def _clean_all(folders: Sequence[Path]) -> None:
    """Remove the training state of all members."""
    for folder in folders:
        clean(folder)
        folder.rmdir()


# -- curves --------------------------------------------------------------------------------------------------


def renamed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A log entry with our names for what was evaluated, without the rest of an evaluation."""
    names = {name: EVALUATED.get(name, name) for name in entry}
    return {new: entry[old] for old, new in names.items() if not new.startswith("eval_")}


def mean_curve(members: Sequence[Sequence[curves.Row]]) -> list[curves.Row]:
    """The mean over members of each metric at each step. Only provenance.json sums up their tokens."""
    values: dict[tuple[int, str], list[float]] = {}
    for curve in members:
        for step, name, value in curve:
            values.setdefault((step, name), []).append(value)
    return [(step, name, sum(column) / len(column)) for (step, name), column in values.items()]


def total(fits: Sequence[Fit]) -> Fit:
    """All members' training as one."""
    return Fit(
        [],
        sum(one.steps for one in fits),
        sum(one.tokens for one in fits),
        sum(one.wall_s for one in fits),
        sum(one.resumed for one in fits),
        fits[0].made_on,
        fits[0].rates,
    )


# -- checks --------------------------------------------------------------------------------------------------


def _check_data(
    splits: Mapping[str, Split], shown: Sequence[Row], long: int, args: Any, tokenizer: Any
) -> list[health.Check]:
    """Checks of comparisons and demonstrations. Raises UserError at the first error."""
    check_evaluation(args, len(splits["validation"].rows), "held-out comparisons")
    texts = {row[name] for row in shown for name in ("prompt", "completion")}
    for split in splits.values():
        texts |= {text for row in split.rows for text in (row["prompt"], *row["responses"])}
    rows = sum(len(split.rows) for split in splits.values())
    message = f"{long} of {rows + long} prompts have a response longer than max_length {args.max_length}"
    return health.stop_at_errors(
        [
            health.known_tokens(tokenizer, sorted(texts), "comparison"),
            health.check("long", long == 0, long, 0, f"{message}: they are skipped"),
        ]
    )


def above_chance(metrics: Mapping[str, float]) -> list[health.Check]:
    """Warns of a reward model that may not tell better from worse; nothing without held-out comparisons."""
    if "accuracy/validation" not in metrics:
        return []
    limit = 0.5 + SIGMAS * metrics["accuracy/validation_se"]
    value = metrics["accuracy/validation"]
    text = f"{value:.1%} of the held-out pairs are ranked as labelled; chance may give up to {limit:.1%}"
    return [health.check("chance", value > limit, value, min(limit, 1.0), text)]
