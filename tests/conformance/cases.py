"""Every objective of the stage `grpo`: how a recipe asks for it, and the reference it is held against."""

from collections.abc import Sequence
from functools import partial

import references as paper
from compare import Case, Scored
from observe import CAP, GROUP
from references import Array

# TRL's std has Bessel's correction, and 1e-4 added to it; `conformance` measures what that is worth
TRL_STD = {"ddof": 1, "guard": 1e-4}


def of_rewards(function, **options):
    """Advantages that depend on the rewards of a group."""
    return lambda now, earlier: function(now.rewards, **options)


def moving_average(now: Scored, earlier: Sequence[Scored]) -> Array:
    return paper.moving_average(now.rewards, [past.rewards for past in earlier])


def of_accuracy(function, **options):
    """Advantages that depend on the accuracy rewards of a group."""
    return lambda now, earlier: function(now.correct, **options)


def of_steps(**options):
    """Advantages of tokens, from the rewards of steps."""

    def advantages(now: Scored, earlier: Sequence[Scored]) -> list[list[Array]]:
        groups = [slice(start, start + GROUP) for start in range(0, len(now.steps), GROUP)]
        return [paper.process(now.steps[rows], now.lengths[rows], **options) for rows in groups]

    return advantages


normalized = of_rewards(paper.normalized, **TRL_STD)
centered = of_rewards(paper.centered)
process = of_steps(**TRL_STD)
process_of_a_population = of_steps()
DR = {"loss_type": "dr_grpo", "scale_rewards": "none"}
SEQUENCE = {"importance_sampling_level": "sequence", "epsilon": 3e-3, "epsilon_high": 4e-3}
SUM = 1 / CAP  # TRL's dr_grpo divides a sum over tokens by the cap: a constant factor
ACCURACY = {"rewards": {"accuracy": 1.0}}  # the only reward that such an advantage may have
COVARIANCES = (0.01, 0.2)  # of Clip-Cov: between these lie some of the tokens of a micro-batch
TOKENS = {"low": 0.2, "high": 0.2}  # clip range


def plain_gradient(advantages, **keys) -> Case:
    """REINFORCE with these advantages: no importance ratio, however often a rollout is used."""
    return Case(paper.reinforce, advantages, DR, {"importance_ratio": "none", **keys}, scale=SUM)


def clipped(advantages, **keys) -> Case:
    """GRPO's clipped ratio and mean over completions with these advantages."""
    return Case(partial(paper.grpo, **TOKENS), advantages, {}, keys)


CASES: dict[str, Case] = {
    "reinforce": plain_gradient(moving_average, advantage="moving_average"),
    "rloo": plain_gradient(of_rewards(paper.leave_one_out), advantage="leave_one_out"),
    "raw": plain_gradient(of_rewards(paper.raw), advantage="raw"),
    "best": plain_gradient(of_rewards(paper.best), advantage="best"),
    "online_rft": Case(
        paper.likelihood,
        of_accuracy(paper.positive),
        {},
        {"advantage": "positive", "importance_ratio": "none", **ACCURACY},
    ),
    "grpo-above-mean": clipped(of_rewards(paper.above_mean, **TRL_STD), advantage="above_mean"),
    "negative": plain_gradient(of_accuracy(paper.negative), advantage="negative", **ACCURACY),
    "w-reinforce": plain_gradient(of_accuracy(paper.weighted), advantage="weighted", **ACCURACY),
    "grpo-pass-at-k": clipped(of_accuracy(paper.pass_at_k, k=2), advantage="pass_at_k", pass_k=2, **ACCURACY),
    "grpo-clip-cov": Case(
        partial(paper.clip_cov, **TOKENS, least=COVARIANCES[0], most=COVARIANCES[1]),
        normalized,
        {},
        {"clip_cov": {"share": 1.0, "low": COVARIANCES[0], "high": COVARIANCES[1]}},
        per_slice=True,
    ),
    "grpo-kl-cov": Case(
        partial(paper.kl_cov, **TOKENS, share=0.35, weight=0.5),
        normalized,
        {},
        {"kl_cov": {"share": 0.35, "weight": 0.5}},
        per_slice=True,
    ),
    "grpo-top-entropy": Case(
        partial(paper.by_entropy, **TOKENS, share=0.23, top=True),
        normalized,
        {"top_entropy_quantile": 0.23},
        per_slice=True,
    ),
    "grpo-bottom-entropy": Case(
        partial(paper.by_entropy, **TOKENS, share=0.77, top=False),
        normalized,
        {},
        {"bottom_entropy_quantile": 0.77},
        per_slice=True,
    ),
    "rgra": Case(paper.likelihood, normalized, {}, {"importance_ratio": "none"}),
    "rloo-clipped": Case(
        partial(paper.dr_grpo, **TOKENS),
        of_rewards(paper.leave_one_out),
        DR,
        {"advantage": "leave_one_out"},
        scale=SUM,
    ),
    "online_rft-clipped": clipped(of_accuracy(paper.positive), advantage="positive", **ACCURACY),
    "negative-clipped": clipped(of_accuracy(paper.negative), advantage="negative", **ACCURACY),
    "w-reinforce-clipped": clipped(of_accuracy(paper.weighted), advantage="weighted", **ACCURACY),
    "grpo": Case(partial(paper.grpo, **TOKENS), normalized),
    "grpo-kl": Case(partial(paper.grpo, **TOKENS, beta=0.3), normalized, {"beta": 0.3}),
    "grpo-overlong": Case(partial(paper.grpo, **TOKENS), normalized, {"mask_truncated_completions": True}),
    "grpo-process": Case(
        partial(paper.grpo, **TOKENS, beta=0.3),
        process,
        {"beta": 0.3},
        {"advantage": "process", **ACCURACY},
    ),
    "grpo-noise": Case(partial(paper.grpo, **TOKENS), normalized, {}, {"old_logp_noise": 0.1}),
    "dapo": Case(
        partial(paper.dapo, low=0.2, high=0.28),
        normalized,
        {"loss_type": "dapo", "epsilon_high": 0.28, "mask_truncated_completions": True},
    ),
    "dapo-dynamic": Case(
        partial(paper.dapo, low=0.2, high=0.28),
        normalized,
        {"loss_type": "dapo", "epsilon_high": 0.28, "mask_truncated_completions": True},
        {
            "dynamic_sampling": {"max_rounds": 3},
            "rewards": {"accuracy": 1.0, "soft_overlong": 1.0},
            "soft_overlong_cache": 8,
        },
    ),
    "dr_grpo": Case(partial(paper.dr_grpo, **TOKENS), centered, DR, scale=SUM),
    "bnpo": Case(partial(paper.dapo, **TOKENS), normalized, {"loss_type": "bnpo"}, per_slice=True),
    "cispo": Case(
        partial(paper.cispo, low=float("inf"), high=0.3),
        normalized,
        {"loss_type": "cispo", "epsilon_high": 1.3},
    ),
    "gspo": Case(partial(paper.gspo, low=3e-3, high=4e-3), normalized, SEQUENCE),
    "gspo-noise": Case(
        partial(paper.gspo, low=3e-3, high=4e-3), normalized, SEQUENCE, {"old_logp_noise": 0.1}
    ),
    "gspo-token": Case(
        partial(paper.gspo_token, low=3e-3, high=4e-3),
        process,
        {"epsilon": 3e-3, "epsilon_high": 4e-3},
        {"importance_ratio": "sequence_token", "advantage": "process", **ACCURACY},
    ),
}
