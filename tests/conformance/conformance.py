"""The conformance table: objective x property -> exact, corrected or deviating, by how much, and why.

    PYTHONPATH=tests/helpers python tests/conformance/conformance.py  writes results/published/conformance.csv

Sizes are measured on the stage. `< 1e-05`: the error of value and gradient of a step, relative. A percentage:
how far the gradient of a step is from that of the equation, at most. `x0.5`: a constant factor of the
gradient. Of a corrected property it is what there would be without the correction.
"""

import csv
import io
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import cases
import distillation_cases
import preference_rows
from cases import CASES
from compare import Case, worst
from measures import (
    Lab,
    Measure,
    by_group,
    exact,
    factor,
    gap,
    held,
    mixed_only,
    named,
    ratio_of_stds,
    with_current,
    without_masked,
    without_nan,
)
from observe import CAP

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "results/published/conformance.csv"
COMMAND = "PYTHONPATH=tests/helpers python tests/conformance/conformance.py"

ADAM = (
    "A constant factor, which Adam divides out unless a KL term or a limit of the gradient's norm stands "
    "beside it."
)
STEP = preference_rows.STEP
EQUATIONS = {  # what `STEP` was held against
    "reinforce": "(r - b) grad log pi, Ahmadian et al. 2024; no ratio, however often a rollout is used.",
    "rloo": "(r - mean of the others) grad log pi, Ahmadian et al. 2024; no ratio.",
    "raw": "r grad log pi: CS336 lecture 17, rewards.",
    "best": "r grad log pi of the group's best: CS336 lecture 17, max.",
    "online_rft": "1[correct] grad log pi, a mean over tokens: DeepSeekMath A.1.3.",
    "grpo-above-mean": "DeepSeekMath Eq. 3 with max(0, advantage): positive only, Carrino et al. 2026.",
    "negative": "Negative sample reinforcement, Zhu et al. 2025: -1 for a wrong response, no ratio.",
    "w-reinforce": "W-REINFORCE, the same: 0.1 for a right response, -1 for a wrong one.",
    "grpo-pass-at-k": "DeepSeekMath Eq. 3 with the advantage of pass@k over all choices, Chen et al. 2025.",
    "grpo-clip-cov": "GRPO without the tokens in Clip-Cov's range, by micro-batch: Cui et al. 2025.",
    "grpo-kl-cov": "GRPO with KL-Cov's penalty, by micro-batch, beside the clip: Cui et al. 2025.",
    "grpo-top-entropy": "GRPO of the micro-batch's tokens with the highest entropy: Wang et al. 2025.",
    "grpo-bottom-entropy": "GRPO of the micro-batch's tokens with the lowest entropy, the same's control.",
    "rgra": "GRPO's advantage and mean over tokens, no ratio: Carrino et al. 2026.",
    "rloo-clipped": "RLOO's advantage in the clipped sum over tokens.",
    "online_rft-clipped": "DeepSeekMath Eq. 3 with 1[correct] for the advantage (PSR of Zhu et al. 2025).",
    "negative-clipped": "DeepSeekMath Eq. 3 with -1 for a wrong response (NSR of Zhu et al. 2025).",
    "w-reinforce-clipped": "DeepSeekMath Eq. 3 with 0.1 for a right and -1 for a wrong response.",
    "grpo": "DeepSeekMath Eq. 3 with beta 0.",
    "grpo-kl": "DeepSeekMath Eq. 3 and 4.",
    "grpo-overlong": "DeepSeekMath Eq. 3 without the losses of truncated completions (DAPO 3.4).",
    "grpo-process": "DeepSeekMath Eq. 3 with the advantages of 4.1.3; the answer is the last step.",
    "grpo-noise": "DeepSeekMath Eq. 3 with noise added to log pi_old.",
    "dapo": "DAPO Eq. 8 over the step's completions, with clip-higher and overlong filtering.",
    "dapo-dynamic": "DAPO Eq. 8 and 11, rewards with Eq. 13.",
    "dr_grpo": "Dr. GRPO 3.1, up to a constant; neither 1/length nor 1/std.",
    "bnpo": "TRL's definition: the token mean of each micro-batch.",
    "cispo": "MiniMax-M1 Eq. 4 and 5 over the step's completions.",
    "gspo": "GSPO Eq. 5 to 7.",
    "gspo-noise": "GSPO Eq. 5 to 7 with noise added to log pi_old.",
    "gspo-token": "GSPO Eq. 13 and 14, with the token advantages of process supervision.",
    "distillation": "GKD Eq. 2, Agarwal et al. 2024: both KLs and JSD; SDPO, Hübotter et al. 2026.",
}
PROPERTIES = {  # property -> status, note
    "std of the group": (
        "deviates",
        "TRL takes G - 1 degrees of freedom and adds 1e-4; the papers give neither. Left so, as all users of "
        f"TRL have it. {ADAM}",
    ),
    "std of the group's steps": (
        "deviates",
        "n - 1 degrees of freedom and 1e-4 added, as for rewards of outcomes; the paper gives neither.",
    ),
    "sum over tokens": (
        "deviates",
        "Divided by max_completion_length, as in the code of Dr. GRPO; the equation has the plain sum. "
        f"{ADAM}",
    ),
    "KL estimator": ("exact", "k3, in the loss and outside the clip: DeepSeekMath Eq. 3 and 4."),
    "KL term without the ratio": (
        "corrected",
        "TRL multiplies the estimator by the importance ratio unless use_bias_correction_kl is false, which "
        "each recipe must write out.",
    ),
    "tokens that a step is divided by": (
        "corrected",
        "With several steps a rollout TRL divides by an equal share of the rollout's tokens; "
        "ours by the step's own.",
    ),
    "tokens of a step for those of a group": (
        "deviates",
        "The equation divides by the tokens of one group, a step holds parts of many. As in the code of "
        "DAPO's authors (verl, token-mean).",
    ),
    "masked completions stay in the mean": (
        "deviates",
        "A truncated completion has no loss but counts in the mean over completions; the DAPO paper does not "
        "say. Under its token mean it counts nowhere.",
    ),
    "a rollout short of mixed groups": (
        "deviates",
        "After max_rounds it is filled up with groups without an advantage, whose tokens count. Eq. 11 has "
        "no bound, the authors' code stops there. Metric dynamic/underfull tells.",
    ),
    "baseline of earlier rollouts only": (
        "deviates",
        "The paper's average over steps may hold the current batch; left out here, where it would correlate "
        "the baseline with the reward.",
    ),
    "micro-batches for a step": (
        "deviates",
        "TRL takes the token mean of each micro-batch: the same where a step is one micro-batch "
        "(gradient_accumulation_steps: 1).",
    ),
    "advantage": (
        "deviates",
        "TRL's bnpo is a normaliser; the paper of that name (arXiv 2506.02864) divides the advantage by a "
        "Beta density, which is not in it.",
    ),
    "bounds of the ratio": (
        "exact",
        "Above only, as in the paper. TRL's epsilon_high is the bound itself, 1 + the paper's epsilon_high; "
        "a recipe with 1 or less is refused.",
    ),
    "ratio of a sequence": (
        "exact",
        "exp of the mean log ratio, Eq. 7: the |o|-th root of the ratio of probabilities.",
    ),
    "mean over sequences": (
        "corrected",
        "With TRL's default loss_type dapo long sequences weigh more, and TRL only warns; each recipe must "
        "write loss_type out, for GSPO grpo.",
    ),
    "GSPO where all tokens have one advantage": ("exact", "Eq. 17, held against Eq. 5."),
}


def rows() -> Iterator[tuple[str, str, Measure]]:
    """(objective, property, how its size is measured); those of `CASES` in its order, then the others."""
    yield from sorted(unsorted(), key=lambda row: [*CASES].index(row[0]))
    yield "distillation", STEP, distillation
    yield from preference_rows.rows()


def unsorted() -> Iterator[tuple[str, str, Measure]]:
    for name, case in CASES.items():
        yield name, STEP, exact(case)
        if case.advantages is cases.normalized:
            # with a KL term, or an advantage that chooses tokens, it is no constant factor of the gradient
            mixed = case.args.get("beta") or case.keys.keys() & {"clip_cov", "kl_cov"}
            yield name, "std of the group", ratio_of_stds(CASES["grpo"] if mixed else case)
        if case.advantages is cases.process:
            population = replace(case, advantages=cases.process_of_a_population)
            yield name, "std of the group's steps", gap(case, "one-update", population)
        if case.scale != 1:
            told = f", 1/cap at cap {CAP}"
            yield name, "sum over tokens", factor(case, "one-update", replace(case, scale=1.0), told)
        if case.args.get("beta"):
            yield name, "KL estimator", exact(case)
            biased = replace(case, args={**case.args, "use_bias_correction_kl": True})
            yield name, "KL term without the ratio", gap(biased, "epochs")
        if case.args.get("loss_type") in ("dapo", "cispo"):
            trl = gap(case, "minibatches", before=equal_share)
            yield name, "tokens that a step is divided by", trl
            group = replace(case, objective=partial(by_group, case.objective))
            yield name, "tokens of a step for those of a group", gap(case, "one-update", group)
        if case.args.get("importance_sampling_level") == "sequence":
            yield name, "ratio of a sequence", exact(case)
            wrong = replace(case, args={**case.args, "loss_type": "dapo"})
            yield name, "mean over sequences", gap(wrong, "windows")

    case = CASES["grpo-overlong"]
    left = replace(case, objective=partial(without_masked, case.objective))
    yield "grpo-overlong", "masked completions stay in the mean", gap(case, "one-update", left)
    case = CASES["dapo-dynamic"]
    short = replace(case, keys={**case.keys, "dynamic_sampling": {"max_rounds": 1}})
    mixed = replace(short, advantages=mixed_only, objective=partial(without_nan, case.objective))
    yield "dapo-dynamic", "a rollout short of mixed groups", gap(short, "one-update", mixed)
    case = CASES["reinforce"]
    current = replace(case, advantages=with_current)
    yield "reinforce", "baseline of earlier rollouts only", gap(case, "one-update", current)
    case = CASES["bnpo"]
    yield "bnpo", "micro-batches for a step", gap(case, "windows", replace(case, per_slice=False))
    yield "bnpo", "advantage", named("another one")
    yield "cispo", "bounds of the ratio", exact(CASES["cispo"])
    args = CASES["gspo-token"].args
    same = Case(CASES["gspo"].objective, cases.normalized, args, {"importance_ratio": "sequence_token"})
    yield "gspo-token", "GSPO where all tokens have one advantage", exact(same)


def distillation(lab: Lab) -> str:
    """The size of the error of all divergences, through accumulation and epochs."""
    errors = []
    for case in distillation_cases.CASES:
        for layout in ("windows", "epochs"):
            seen = distillation_cases.run(lab.folder, case, layout)
            errors.append(worst(distillation_cases.outcomes(seen, case, lab.folder)))
    return held(max(errors))


def equal_share(rollouts: Any) -> Any:
    """The tokens of the rollout by its optimizer steps, by which TRL divides."""
    steps = len(rollouts.kept) / rollouts.trainer.args.gradient_accumulation_steps
    return sum(part.loss_mask.sum() for part in rollouts.kept) / steps


def declared() -> list[tuple[str, str, str, str]]:
    """(objective, property, status, note) of each row."""
    return [(name, what, *explained(name, what)) for name, what, _ in rows()]


def explained(name: str, what: str) -> tuple[str, str]:
    """Status and note of a property of an objective."""
    if found := preference_rows.NOTES.get((name, what)):
        return found
    return ("exact", EQUATIONS[name]) if what == STEP else PROPERTIES[what]


def table(folder: Path) -> str:
    """The CSV, measured. Raises AssertionError naming the row whose status is not what was found."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["objective", "property", "status", "size", "note"])
    lab = Lab(folder)
    for (name, what, measure), (_, _, status, note) in zip(rows(), declared(), strict=True):
        try:
            size = measure(lab)
        except AssertionError as error:
            raise AssertionError(f"{name}, {what}: not as told, {status}: {error}") from error
        writer.writerow([name, what, status, size, note])
    return out.getvalue()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        TABLE.write_text(table(Path(place)))
    print(f"wrote {TABLE.relative_to(ROOT)}")
