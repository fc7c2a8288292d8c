"""Stage `reward_model`: a reward model, or an ensemble of them, from comparisons, by TRL's RewardTrainer.

    python -m encore.stages reward_model --config '{"args": …, "comparisons": "grouped"}' \\
        --input policy=results/…/metrics.json --input data=results/…/metrics.json \\
        --input demonstrations=results/…/metrics.json …

The comparisons come from a stage `label`. Each of `members` starts from the policy with its own new head, and
sees the comparisons in its own order.

After training, a bias sets the mean reward of demonstrations to 0 (InstructGPT §3.5; Stiennon et al. 2020,
App. B.1). The demonstrations are an input, or the key `demonstrations` names them as in a stage `sft`;
without any, the responses of the training data serve instead. With `normalize: unit`, rewards are also
divided by their standard deviation over the responses of the training data.

Every field of `args` goes to TRL's RewardConfig; its `eval_strategy` measures the held-out comparisons during
training. calibration.csv is about the held-out comparisons at the end. With `labels` instead of `comparisons`
the stage trains a process or an outcome reward model (encore/stages/step_reward.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from trl import RewardConfig

from encore.data import preferences
from encore.learning.fit import clean, fit
from encore.learning.reward_model import Reward, grouped, shuffled
from encore.models import lora, reward_model
from encore.models.experts import idle
from encore.models.reward_model import HEAD, from_policy
from encore.recipe.kinds import RewardModelStage
from encore.rewards import quality
from encore.runtime import curves, files, health
from encore.runtime.provenance import Fit
from encore.stages import comparisons, step_reward
from encore.stages.comparisons import Data, Split
from encore.stages.job import Job
from encore.stages.outcome import Outcome
from encore.stages.policy import loading_options, locate_policy, positions
from encore.stages.trainer_config import arguments, batch_size

FORMULA = "6 x parameters x tokens of prompts and responses (forward and backward), of all members"
MEMBER_STRIDE = 10_007  # difference between the seeds of two members
SIGMAS = 2.0  # a held-out accuracy within this many standard errors of a half may be chance
EVALUATED = {"eval_accuracy": "accuracy/validation", "eval_loss": "loss/validation"}
# value of the key `comparisons` -> the function that makes elements of data, and the word for elements
ARRANGED = {"grouped": (grouped, "prompts"), "shuffled": (shuffled, "pairs")}


def run(stage: RewardModelStage, job: Job) -> Outcome:
    """Train the members and save them; calibration.csv goes beside metrics.json."""
    if stage.labels:
        return step_reward.run(stage, job)
    source, tokenizer = locate_policy(stage, job.inputs)
    folders = [job.workdir / f"member{number}" for number in range(stage.members)]
    args = [
        arguments(RewardConfig, stage, folder, job.seed + MEMBER_STRIDE * number, save_steps=100)
        for number, folder in enumerate(folders)
    ]
    for number, member_args in enumerate(args if len(args) > 1 else []):
        member_args.run_name = (
            f"{member_args.run_name}/member{number}" if member_args.run_name else member_args.run_name
        )
    data, checks = comparisons.read_comparisons(stage, job, tokenizer, args[0])
    # scores of each member, (sequences,)
    raw: dict[str, list[np.ndarray]] = {name: [] for name in data.scored}
    fits: list[Fit] = []
    partly = reward_model.begin(job.workdir / "final")
    for number, member_args in enumerate(args):
        if len(args) > 1:
            job.progress.note(f"member {number + 1} of {len(args)}")
        model = from_policy(source, tokenizer, member_args.seed, **loading_options(stage, member_args))
        if not fits:
            checks += health.stop_at_errors([health.context(data.longest, 0, positions(model))])
        done, model = train(model, tokenizer, member_args, data.splits, stage, job)
        fits.append(done)
        for name, sequences in data.scored.items():
            raw[name].append(reward_model.raw_scores(model, sequences).double().numpy())
        reward_model.add(partly, number, model)
    bias, scale = _normalised(raw, bool(data.demonstrations), stage.normalize or "mean")
    reward_model.finish(partly, tokenizer, bias, scale, job.workdir / "final")

    curve = curves.deterministic(mean_curve([curves.rows(map(renamed, done.history)) for done in fits]))
    parameters = lora.parameters(model)
    metrics: dict[str, float] = {
        **curves.scalars(curve),
        **_measured(data, raw, scale, job),
        **quality.spread(raw, bias, scale),
        **_counts(data),
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


def _measured(
    data: Data, raw: Mapping[str, Sequence[np.ndarray]], scale: Sequence[float], job: Job
) -> dict[str, float]:
    """Return metrics of how well the members rank comparisons, and write calibration.csv.

    Rewards are compared on the scale of training, on which the gap of two rewards is a logit. For this, each
    member's raw rewards are divided by the member's scale, and multiplied by the mean scale.
    """
    unit = float(np.mean(scale))
    of_members = {
        name: [
            quality.measured(split.rows, split.sequences, rewards * unit / member_scale)
            for rewards, member_scale in zip(raw[name], scale, strict=True)
        ]
        for name, split in (("train", data.sample), ("validation", data.splits["validation"]))
    }
    measures, calibration = quality.report(of_members)
    files.write(job.out.with_name("calibration.csv"), quality.text(calibration))
    return measures


def _counts(data: Data) -> dict[str, float]:
    """Return the numbers of prompts, of pairs, of demonstrations, and of skipped prompts by reason."""
    return {
        **{f"skipped/{reason}": count for reason, count in data.skipped.items()},
        **{f"prompts/{name}": len(split.rows) for name, split in data.splits.items()},
        **{
            f"pairs/{name}": sum(len(preferences.better_worse(row)) for row in split.rows)
            for name, split in data.splits.items()
        },
        "demonstrations": len(data.demonstrations),
    }


def train(
    model: Any,
    tokenizer: Any,
    args: Any,
    splits: Mapping[str, Split],
    stage: RewardModelStage,
    job: Job,
) -> tuple[Fit, Any]:
    """Train `model`; return how the training went, and the trained model.

    The stage's key `comparisons` says whether an element of the data is all pairs of a prompt (`grouped`) or
    a single pair (`shuffled`). LoRA adapters are trained together with the head, and then merged.
    """
    arrange, what = ARRANGED[stage.comparisons or "grouped"]
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
        peft_config=lora.adapters(stage.lora, model, args.seed, HEAD),
    )
    done = fit(trainer, job.progress)
    return done, lora.merged(trainer.model)


def _normalised(
    raw: Mapping[str, Sequence[np.ndarray]], shown: bool, normalize: str
) -> tuple[list[float], list[float]]:
    """Return the bias and the scale of each member, from its raw rewards.

    `shown`: whether the bias centres the rewards of demonstrations instead of training responses.
    """
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
    """Return a log entry with our names for evaluated metrics, without other evaluation values."""
    names = {name: EVALUATED.get(name, name) for name in entry}
    return {new: entry[old] for old, new in names.items() if not new.startswith("eval_")}


def mean_curve(members: Sequence[Sequence[curves.Row]]) -> list[curves.Row]:
    """Return the mean over members of each metric at each step, numbers of tokens included."""
    values: dict[tuple[int, str], list[float]] = {}
    for curve in members:
        for step, name, value in curve:
            values.setdefault((step, name), []).append(value)
    return [(step, name, sum(column) / len(column)) for (step, name), column in values.items()]


def total(fits: Sequence[Fit]) -> Fit:
    """Return the trainings of all members, added up as one training."""
    return replace(
        fits[0],
        history=[],
        steps=sum(each.steps for each in fits),
        tokens=sum(each.tokens for each in fits),
        wall_s=sum(each.wall_s for each in fits),
        resumed=sum(each.resumed for each in fits),
        earlier_cpu_s=sum(each.earlier_cpu_s for each in fits),
    )


# -- checks --------------------------------------------------------------------------------------------------


def above_chance(metrics: Mapping[str, float]) -> list[health.Check]:
    """Return a check that warns if the held-out accuracy may be chance; [] without held-out comparisons."""
    if "accuracy/validation" not in metrics:
        return []
    limit = 0.5 + SIGMAS * metrics["accuracy/validation_se"]
    value = metrics["accuracy/validation"]
    text = f"{value:.1%} of the held-out pairs are ranked as labelled; chance may give up to {limit:.1%}"
    return [health.make_check("chance", value > limit, value, min(limit, 1.0), text)]
