"""Rows of the conformance table for what learns from preferences: stages `ppo`, `dpo` and `reward_model`."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import dpo_cases
import kto_cases
import ppo_cases
import reward_cases
from compare import worst
from measures import Lab, Measure, apart, held, named
from torch import Tensor

from encore.learning.reward_model import grouped, shuffled

STEP = "value and gradient of a step"
LAYOUT = "accumulated"  # of the stage dpo
NOTES = {  # objective, property -> status, note
    ("ppo", STEP): (
        "exact",
        "Policy: Schulman et al. 2017 Eq. 7, a mean over the tokens of a step. Critic: squared error to the "
        "returns, clipped around the old values. Advantages: GAE, Schulman et al. 2016 Eq. 16; rewards: the "
        "KL (k1) at each token, the score at the last (Ouyang et al. 2022, 3.5).",
    ),
    ("ppo", "a response that does not end"): (
        "exact",
        "A penalty, or a score in its place (the EOS trick, arXiv 2403.17031, detail 23).",
    ),
    ("ppo", "PPO-ptx"): (
        "exact",
        "Ouyang et al. 2022 Eq. 2: in every update the weighed mean log-likelihood of documents' tokens.",
    ),
    ("ppo", "limits of the gradient's norm"): (
        "deviates",
        "Policy and critic have one each, as they have backbones of their own; the papers do not say.",
    ),
    ("reward_model", STEP): (
        "exact",
        "Ouyang et al. 2022 Eq. 1: the mean over prompts of the mean over a prompt's K(K-1)/2 pairs.",
    ),
    ("reward_model", "shuffled pairs"): ("exact", "Bradley-Terry: the mean over the pairs of a step."),
    ("dpo", STEP): ("exact", "Rafailov et al. 2023 Eq. 7."),
    ("dpo", "loss_type robust"): ("exact", "Chowdhury et al. 2024 Eq. 12."),
    ("dpo", "loss_type hinge"): ("exact", "Zhao et al. 2023 (SLiC) Eq. 2, of the implicit rewards."),
    ("dpo", "CPO"): (
        "deviates",
        "The likelihood of the chosen is a mean over a micro-batch's tokens, as in TRL's CPOTrainer; Xu "
        "et al. 2024 have its sum over a completion. But for that it is exact.",
    ),
    ("dpo", "SimPO"): ("exact", "Meng et al. 2024 Eq. 6: no reference, log-probabilities a token, gamma."),
    ("dpo", "ORPO"): (
        "exact",
        "Hong et al. 2024 Eq. 6 and 7; the likelihood of the chosen is a mean over a micro-batch's tokens.",
    ),
    ("dpo", "loss_type ipo"): (
        "deviates",
        "TRL takes log-ratios a token where Azar et al. 2023 Eq. 17 has their sums; but for that it is "
        "exact. Left so, as all users of TRL have it.",
    ),
    ("kto", STEP): ("exact", "Ethayarajh et al. 2024, 4.1, with weights of desirable and undesirable."),
    ("kto", "KL of a micro-batch"): (
        "exact",
        "No less than 0, as in the paper, which estimates it from a batch; here from each micro-batch, as in "
        "TRL. So far apart without the bound.",
    ),
}


def rows() -> Iterator[tuple[str, str, Measure]]:
    """(objective, property, how its size is measured)."""
    yield "ppo", STEP, ppo("plain", "ziegler")
    yield "ppo", "a response that does not end", ppo("penalty", "eos-trick")
    yield "ppo", "PPO-ptx", ppo("ptx")
    yield "ppo", "limits of the gradient's norm", named("max_grad_norm for each")
    yield "reward_model", STEP, reward_model(grouped, reward_cases.LAYOUTS.values())
    yield "reward_model", "shuffled pairs", reward_model(shuffled, [(8, 2)])
    yield "dpo", STEP, dpo("sigmoid")
    for name in ("robust", "hinge"):
        yield "dpo", f"loss_type {name}", dpo(name)
    yield "dpo", "CPO", cpo
    yield "dpo", "SimPO", dpo("simpo")
    yield "dpo", "ORPO", dpo("orpo")
    yield "dpo", "loss_type ipo", ipo
    yield "kto", STEP, kto
    yield "kto", "KL of a micro-batch", floorless


def ppo(*names: str) -> Measure:
    """Value and gradient of policy and critic, through minibatches, accumulation and epochs."""

    def measure(lab: Lab) -> str:
        found = []
        for name in names:
            for layout in ("minibatches", "epochs"):
                policy, critic, _ = ppo_cases.outcomes(ppo_cases.run(lab.folder, name, layout), lab.folder)
                found += [worst(policy), worst(critic)]
        return held(max(found))

    return measure


def reward_model(arrange: Callable, layouts: Sequence[tuple[int, int]]) -> Measure:
    def measure(lab: Lab) -> str:
        elements = reward_cases.elements_of(arrange)
        seen = [reward_cases.Seen(lab.folder / "reward", elements, layout) for layout in layouts]
        return held(max(one.deviation() for one in seen))

    return measure


def dpo(name: str) -> Measure:
    return lambda lab: held(deviation(lab.folder, name))


def deviation(folder: Path, name: str) -> float:
    """Of the stage's loss from its reference, through accumulation."""
    return worst(dpo_cases.judge(dpo_cases.watch(folder, name, LAYOUT), dpo_cases.CASES[name][0], folder))


def cpo(lab: Lab) -> str:
    """Exact with a likelihood a token; so far from the equation as it stands."""
    held(deviation(lab.folder, "cpo"))
    seen, sums = dpo_cases.watch(lab.folder, "cpo", LAYOUT), dpo_cases.by_completions
    return apart(dpo_cases.judge(seen, dpo_cases.sigmoid, lab.folder, sums))


def ipo(lab: Lab) -> str:
    """Exact with log-ratios a token; so far from the equation as it stands."""

    def sums(chosen: Tensor, rejected: Tensor, *lengths: int) -> Tensor:
        return dpo_cases.ipo(chosen, rejected, 1, 1)

    held(deviation(lab.folder, "ipo"))
    return apart(dpo_cases.judge(dpo_cases.watch(lab.folder, "ipo", LAYOUT), sums, lab.folder))


def kto(lab: Lab) -> str:
    """Through accumulation, with both weights of the two kinds of completions."""
    errors = []
    for case, weights in kto_cases.WEIGHTS.items():
        seen = kto_cases.watch(lab.folder, case, "accumulated")
        errors.append(worst(kto_cases.judge(seen, weights, lab.folder)))
    return held(max(errors))


def floorless(lab: Lab) -> str:
    seen = kto_cases.watch(lab.folder, "uneven", "accumulated")
    return apart(kto_cases.judge(seen, kto_cases.WEIGHTS["uneven"], lab.folder, floor=-math.inf))
