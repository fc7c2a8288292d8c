"""The names of objectives in the conformance table, by the settings of a stage `grpo`."""

from encore.recipe.kinds.grpo import GrpoStage

PLAIN = {  # advantage -> objective in the conformance table, for losses without an importance ratio
    "moving_average": "reinforce",
    "leave_one_out": "rloo",
    "positive": "online_rft",
    "negative": "negative",
    "weighted": "w-reinforce",
    "raw": "raw",
    "best": "best",
}
# advantage that is divided by the group's std -> objective in the conformance table, for losses with a ratio
OF_GRPO = {
    "process": "grpo-process",
    "above_mean": "grpo-above-mean",
    "pass_at_k": "grpo-pass-at-k",
}


def name(stage: GrpoStage) -> str:
    """Return the name of a `grpo` stage's objective in the conformance table."""
    args, advantage = stage.args, stage.advantage
    if stage.objective:
        return stage.objective
    if stage.importance_ratio == "none":
        if advantage is None and args.loss_type == "grpo":
            return "rgra"
        return PLAIN.get(advantage or "", f"{advantage or args.loss_type}, no ratio")
    if stage.importance_ratio == "sequence_token":
        return "gspo-token"
    noise = "-noise" if stage.old_logp_noise else ""
    if args.importance_sampling_level == "sequence":
        return "gspo" + noise
    if advantage in OF_GRPO:
        return OF_GRPO[advantage]
    if advantage:
        return f"{PLAIN[advantage]}-clipped"
    if args.loss_type == "dapo" and stage.dynamic_sampling:
        return "dapo-dynamic"
    if args.loss_type != "grpo":
        return args.loss_type
    if stage.clip_cov or stage.kl_cov:
        return "grpo-clip-cov" if stage.clip_cov else "grpo-kl-cov"
    if args.top_entropy_quantile < 1 or stage.bottom_entropy_quantile:
        return "grpo-bottom-entropy" if stage.bottom_entropy_quantile else "grpo-top-entropy"
    kl = "-kl" if args.beta else ""
    return "grpo" + (noise or kl or ("-overlong" if args.mask_truncated_completions else ""))
