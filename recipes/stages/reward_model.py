"""Stage `reward_model`: a reward model, or an ensemble of them, from comparisons, by TRL's RewardTrainer.

    python -m recipes.stages.reward_model --config '{"args": …, "comparisons": "grouped"}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json \\
        --input demonstrations=results/…/metrics.json …

The comparisons come from the product of a stage `label`. Each of `members` starts from the policy with a head
of its own, and sees the comparisons in an order of its own. After training a bias makes the demonstrations'
mean reward 0 (InstructGPT §3.5; Stiennon et al. 2020, App. B.1), be they an input or what the key
`demonstrations` names, as a stage `sft` does; without any, that of the responses trained on. With `normalize:
unit` rewards are also divided by the latter's standard deviation. Every field of `args` goes to TRL's
RewardConfig; with its `eval_strategy` the held-out comparisons are measured on the way. calibration.csv is of
those at the end.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recipes.data import token_ids
from recipes.data.token_ids import Row, Sequences
from recipes.errors import UserError
from recipes.rewards import quality
from recipes.runtime import curves, files, health, provenance
from recipes.runtime.progress import Progress
from recipes.stages import cli

FORMULA = "6 x parameters x tokens of prompts and responses (forward and backward), of all members"
MEMBER_STRIDE = 10_007  # between the seeds of two members
MEASURED = 1024  # prompts trained on, evenly spread, whose comparisons are measured at the end
SIGMAS = 2.0  # held-out accuracy within so many standard errors of a half may be chance
EVALUATED = {"eval_accuracy": "accuracy/validation", "eval_loss": "loss/validation"}


@dataclass(frozen=True)
class Split:
    """Comparisons to train on or to measure."""

    rows: list[Row]
    sequences: list[Sequences]

    @property
    def flat(self) -> Sequences:
        return [one for of in self.sequences for one in of]


def run(
    config: dict[str, Any], inputs: dict[str, Path], seed: int, workdir: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Train and save the members under `workdir`/final; curve.csv and calibration.csv beside `out`."""
    from trl import RewardConfig

    from recipes.data import demonstrations, preferences
    from recipes.models import language_model, reward_model
    from recipes.models.reward_model import from_policy
    from recipes.stages.arguments import arguments

    started = provenance.now()
    rows, skipped = preferences.usable(preferences.load(inputs["data"]))
    checks = health.stop_at_errors(preferences.checks(rows, skipped))
    source = language_model.locate(config.get("model"), inputs.get("policy"))
    tokenizer = language_model.load_tokenizer(source)
    folders = [workdir / f"member{number}" for number in range(config.get("members", 1))]
    args = [
        arguments(RewardConfig, config["args"], {"save_steps": 100}, folder, seed + MEMBER_STRIDE * number)
        for number, folder in enumerate(folders)
    ]
    splits = {}
    for name in preferences.SPLITS:
        found = preferences.of_split(rows, name)
        fit_in = token_ids.fitting(found, token_ids.tokenised(found, tokenizer), args[0].max_length)
        skipped["long"] = skipped.get("long", 0) + len(found) - len(fit_in[0])
        splits[name] = Split(*fit_in)
    splits["train"] = first(splits["train"], config.get("problems"))
    shown = []
    if "demonstrations" in inputs:
        shown = demonstrations.load(inputs["demonstrations"])
    elif "demonstrations" in config:
        shown = demonstrations.of_task(config["demonstrations"], seed)
    shown, unusable = demonstrations.usable(shown)
    skipped |= {f"demonstrations/{why}": count for why, count in unusable.items()}
    checks += before(splits, shown, skipped["long"], args[0], tokenizer)

    every = max(1, len(splits["train"].rows) // MEASURED)
    sample = Split(splits["train"].rows[::every], splits["train"].sequences[::every])
    scored = {"train": sample.flat, "validation": splits["validation"].flat}
    scored["demonstrations"] = demonstrated(shown, tokenizer, args[0].max_length)
    raw: dict[str, list[np.ndarray]] = {name: [] for name in scored}  # of each member (sequences,)
    fits: list[provenance.Fit] = []
    partly = reward_model.begin(workdir / "final")
    for number, member_args in enumerate(args):
        if len(args) > 1:
            progress.say(f"member {number + 1} of {len(args)}")
        options = member_args.model_init_kwargs or {}
        model = from_policy(source, tokenizer, member_args.seed, **options)
        if not fits:
            longest = max(map(len, [*splits["train"].flat, *scored["validation"], *scored["demonstrations"]]))
            positions = getattr(model.config, "max_position_embeddings", None)
            checks += health.stop_at_errors([health.context(longest, 0, positions)])
        fits.append(train(model, tokenizer, member_args, splits, config["comparisons"], progress))
        for name, sequences in scored.items():
            raw[name].append(reward_model.read(model, sequences).double().numpy())
        parameters = model.num_parameters()
        reward_model.add(partly, number, model)
    bias, scale = normalised(raw, bool(scored["demonstrations"]), config.get("normalize", "mean"))
    reward_model.finish(partly, tokenizer, bias, scale, workdir / "final")

    curve = curves.deterministic(mean_curve([curves.rows(map(renamed, done.history)) for done in fits]))
    files.write(out.with_name("curve.csv"), curves.text(curve))
    held_out, unit = splits["validation"], float(np.mean(scale))
    measured = {  # as the final rewards, but on the scale that was trained, in which a gap is a log-odds
        name: [
            quality.measured(of.rows, of.sequences, rewards * unit / own)
            for rewards, own in zip(raw[name], scale, strict=True)
        ]
        for name, of in (("train", sample), ("validation", held_out))
    }
    measures, calibration = quality.report(measured)
    files.write(out.with_name("calibration.csv"), quality.text(calibration))
    metrics = {
        **curves.scalars(curve),
        **measures,
        **quality.spread(raw, bias, scale),
        **{f"skipped/{name}": count for name, count in skipped.items()},
        **{f"prompts/{name}": len(split.rows) for name, split in splits.items()},
        "pairs/train": sum(len(token_ids.pairs(row)) for row in splits["train"].rows),
        "pairs/validation": sum(len(token_ids.pairs(row)) for row in held_out.rows),
        "demonstrations": len(scored["demonstrations"]),
        "members": len(args),
        "parameters": parameters,
    }
    return {
        "metrics": metrics,
        "health": checks + above_chance(metrics),
        "provenance": provenance.record(started, total(fits), 6 * parameters, FORMULA),
        "clean": lambda: clean_all(folders),
    }


def train(
    model: Any,
    tokenizer: Any,
    args: Any,
    splits: Mapping[str, Split],
    arrangement: str,
    progress: Progress,
) -> provenance.Fit:
    """Train `model` in place, on elements that are prompts (`grouped`) or single pairs (`shuffled`)."""
    from datasets import Dataset

    from recipes.trainers import reward_model
    from recipes.trainers.fit import fit

    arranged = {"grouped": reward_model.grouped, "shuffled": reward_model.shuffled}
    data = {
        name: Dataset.from_list(
            [
                element
                for row, sequences in zip(split.rows, split.sequences, strict=True)
                for element in arranged[arrangement if name == "train" else "grouped"](
                    sequences, token_ids.pairs(row)
                )
            ]
        )
        for name, split in splits.items()
    }
    args.model_init_kwargs = None  # TRL refuses them with a loaded model
    window = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
    health.stop_at_errors([enough(len(data["train"]), window, arrangement)])
    trainer = reward_model.Reward(
        model,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data["validation"] if args.eval_strategy != "no" else None,
        processing_class=tokenizer,
    )
    return fit(trainer, progress)


def first(split: Split, problems: int | None) -> Split:
    """The comparisons of the first so many prompts. Raises UserError where there are fewer."""
    if problems is not None and problems > len(split.rows):
        raise UserError(f"problems: {problems} asked, but there are {len(split.rows)} prompts to train on")
    return Split(split.rows[:problems], split.sequences[:problems])


def demonstrated(rows: Sequence[Row], tokenizer: Any, max_length: int | None) -> Sequences:
    """Prompt, completion and end of sequence of demonstrations, as token ids; without those that are longer.

    Raises UserError where there are demonstrations, and none is short enough.
    """
    like = [{"prompt": row["prompt"], "responses": [row["completion"]], "truncated": [False]} for row in rows]
    _, found = token_ids.fitting(like, token_ids.tokenised(like, tokenizer), max_length)
    if rows and not found:
        raise UserError(
            f"args.max_length: all {len(rows)} demonstrations are longer than {max_length} tokens"
        )
    return [one for of in found for one in of]


def normalised(
    raw: Mapping[str, Sequence[np.ndarray]], shown: bool, normalize: str
) -> tuple[list[float], list[float]]:
    """Bias and scale of each member."""
    centred = raw["demonstrations" if shown else "train"]
    scale = [max(float(values.std()), 1e-8) if normalize == "unit" else 1.0 for values in raw["train"]]
    return [float(values.mean()) for values in centred], scale


def clean_all(folders: Sequence[Path]) -> None:
    """Remove the training state of all members."""
    from recipes.trainers.fit import clean

    for folder in folders:
        clean(folder)
        folder.rmdir()


# -- curves --------------------------------------------------------------------------------------------------


def renamed(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A log entry with this suite's names of what was evaluated, less the rest of an evaluation."""
    names = {name: EVALUATED.get(name, name) for name in entry}
    return {new: entry[old] for old, new in names.items() if not new.startswith("eval_")}


def mean_curve(members: Sequence[Sequence[curves.Row]]) -> list[curves.Row]:
    """The mean over members of each metric at each step; tokens are summed up by `provenance`, not here."""
    values: dict[tuple[int, str], list[float]] = {}
    for curve in members:
        for step, name, value in curve:
            values.setdefault((step, name), []).append(value)
    return [(step, name, sum(found) / len(found)) for (step, name), found in values.items()]


def total(fits: Sequence[provenance.Fit]) -> provenance.Fit:
    """All members' training as one."""
    return provenance.Fit(
        [],
        sum(one.steps for one in fits),
        sum(one.tokens for one in fits),
        sum(one.wall_s for one in fits),
        sum(one.resumed for one in fits),
    )


# -- checks --------------------------------------------------------------------------------------------------


def before(
    splits: Mapping[str, Split], shown: Sequence[Row], long: int, args: Any, tokenizer: Any
) -> list[health.Check]:
    """Checks of the data. Raises UserError at the first that fails."""
    if args.eval_strategy != "no" and not splits["validation"].rows:
        raise UserError(
            f"args.eval_strategy: {args.eval_strategy.value}, but there are no held-out comparisons"
        )
    texts = {row[name] for row in shown for name in ("prompt", "completion")}
    for split in splits.values():
        texts |= {text for row in split.rows for text in (row["prompt"], *row["responses"])}
    rows = sum(len(split.rows) for split in splits.values())
    message = f"{long} of {rows + long} prompts have a response longer than max_length {args.max_length}"
    return health.stop_at_errors(
        [
            health.known_tokens(tokenizer, sorted(texts), "comparison"),
            health.check("long", long == 0, long, 0, f"{message}: they are skipped", "warning"),
        ]
    )


def enough(available: int, needed: int, arrangement: str) -> health.Check:
    """An incomplete last batch of an epoch is left out, so with too few comparisons there is none."""
    what = "prompts" if arrangement == "grouped" else "pairs"
    message = f"one step takes {needed} {what}, there are {available}"
    return health.check("enough_data", available >= needed, available, needed, message, "error")


def above_chance(metrics: Mapping[str, float]) -> list[health.Check]:
    """Warns of a reward model that may not tell better from worse; nothing without held-out comparisons."""
    if "accuracy/validation" not in metrics:
        return []
    limit = 0.5 + SIGMAS * metrics["accuracy/validation_se"]
    value = metrics["accuracy/validation"]
    text = f"{value:.1%} of the held-out pairs are ranked as labelled; chance may give up to {limit:.1%}"
    return [health.check("chance", value > limit, value, min(limit, 1.0), text, "warning")]


if __name__ == "__main__":
    sys.exit(cli.main("reward_model", run))
