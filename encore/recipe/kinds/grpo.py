"""Stage `grpo`: the policy is trained by GRPO, or by an objective of its family."""

from collections.abc import Iterator
from typing import Literal

from encore.recipe.base import Mistake, NotNegative, PartOfAll, Positive
from encore.recipe.covariance import ClipCov, KlCov
from encore.recipe.kinds.rollout import REWARD_MODEL
from encore.recipe.kinds.sampling import SamplingStage
from encore.recipe.kinds.stage import rule
from encore.recipe.loss_types import WHOLE, check_window
from encore.recipe.task import DataSet, own_mistakes

# advantages that read no reward but accuracy
ACCURACY_ALONE = ("positive", "negative", "weighted", "pass_at_k", "process")
# advantages that read accuracy alone, or have one baseline for all prompts
ACROSS = (*ACCURACY_ALONE, "moving_average")

Advantage = Literal[
    "leave_one_out",
    "moving_average",
    "raw",
    "best",
    "above_mean",
    "positive",
    "negative",
    "weighted",
    "pass_at_k",
    "process",
]


class GrpoStage(SamplingStage):
    """A stage that trains the policy by GRPO or an objective of its family."""

    least_group = 2
    stands_for = {
        "chat": ("template",),
        "domains": ("task", "template", "rewards"),
        "caps": ("max_completion_length",),
        "global_batch": ("gradient_accumulation_steps",),
        "objective": ("loss_type", "importance_sampling_level", "use_bias_correction_kl", "epsilon"),
    }
    written_out = (
        *(
            "loss_type",
            "beta",
            "use_bias_correction_kl",
            "scale_rewards",
            "num_generations",
            "num_iterations",
        ),
        ("steps_per_generation", "generation_batch_size"),
        *("gradient_accumulation_steps", "epsilon", "temperature", "top_p", "mask_truncated_completions"),
        *("importance_sampling_level", "lr_scheduler_type", "learning_rate", "max_completion_length"),
        "vllm_importance_sampling_correction",
    )

    run: Literal["grpo"]
    needs: dict[Literal["policy", "reward_model"], str] = {}
    # whether to leave out prompts that share 13 words in a row with a data set of evals.tasks
    # (encore/data/decontamination.py)
    decontaminate: bool = False
    # The reward of a reward model with `labels`, instead of its score: the probability that the answer is
    # right (last), the probability that every step and the answer are right (product), the smallest of these
    # probabilities (min), their sum, or the mean of 1 for a right step and -0.5 for a wrong one, with 1 more
    # for a right answer (points): encore/rewards/learned.py
    aggregation: Literal["last", "product", "min", "sum", "points"] | None = None
    # The advantage, instead of TRL's; equations: encore/objectives/advantages.py and, for process,
    # process_supervision.py. TRL has no argument for this key and the keys below.
    advantage: Advantage | None = None
    pass_k: Positive | None = None  # k of advantage pass_at_k, at most args.num_generations
    # none: a policy gradient without a ratio, however often a rollout is used; sequence_token: GSPO, Eq.
    # 13-14
    importance_ratio: Literal["none", "sequence_token"] | None = None
    # the share of a micro-batch's tokens, those with the lowest entropy, that alone learn: the control of
    # args.top_entropy_quantile (arXiv 2506.01939)
    bottom_entropy_quantile: PartOfAll | None = None
    # Clip-Cov or KL-Cov, which hold back tokens of high covariance: encore/objectives/covariance.py
    clip_cov: ClipCov | None = None
    kl_cov: KlCov | None = None
    # my_module:loss, a user's function instead of loss_type and any ratio; docs/objective.md
    objective: str | None = None
    # whether a prompt is read once for all its completions in a micro-batch, which saves much work if answers
    # are short; the results are equal up to rounding: encore/learning/shared_prompts.py
    share_prompts: bool = False
    # the precision in which sampler lean samples, as an engine would: encore/sampling/rounded.py; by default
    # the policy's
    sampler_precision: Literal["bfloat16", "float16", "int8", "float8"] | None = None
    # standard deviation in nats of noise on old log-probabilities, as if the sampler differed from the policy
    old_logp_noise: NotNegative = 0.0

    @property
    def by_length(self) -> bool:
        """Whether the micro-batches of an update have completions of like length, which pads them less.

        A mean over the tokens of a micro-batch, or a choice among them, has another value in other
        micro-batches.
        """
        args = self.args
        chosen = self.clip_cov or self.kl_cov or self.bottom_entropy_quantile or args.top_entropy_quantile < 1
        return args.loss_type in WHOLE and not (chosen or self.objective or self.share_prompts)

    @rule
    def _rounded_sampler(self) -> Iterator[Mistake]:
        """Yield a mistake unless the sampler whose precision is set is the lean one, of plain weights.

        In int8 and float8 the base weights and the adapters would be rounded apart, not their sum as in an
        engine.
        """
        if self.sampler_precision and self.sampler != "lean":
            yield "sampler_precision", "of sampler lean alone; write it, or leave the precision out"
        if self.sampler_precision in ("int8", "float8") and self.lora:
            yield "sampler_precision", "not beside lora; expected bfloat16 or float16, or no lora"

    @rule
    def _shared_prompts(self) -> Iterator[Mistake]:
        """Yield a mistake for shared prompts on several GPUs, which would call the model unequally often."""
        if self.share_prompts and self.resources.gpu > 1:
            words = f"not for several GPUs, but resources.gpu is {self.resources.gpu}; remove one of them"
            yield "share_prompts", words

    @rule
    def _reward_model(self) -> Iterator[Mistake]:
        """Yield a mistake if a reward model is missing where it is used, or if nothing uses it."""
        used = [place for place, names in self.weights.items() if REWARD_MODEL in names]
        has_model = REWARD_MODEL in self.needs
        if used and not has_model:
            words = "needs.reward_model is missing; name the stage that trains it"
            yield f"{used[0]}.reward_model", words
        if has_model and not used:
            yield "needs.reward_model", "no rewards use it; remove it"
        if self.ensemble and not used:
            yield "ensemble", "rewards.reward_model is missing, there is nothing to aggregate"

    @rule
    def _domains_apart(self) -> Iterator[Mistake]:
        """Yield keys that would apply one domain's rewards to another, or need prompts of one task."""
        if self.domains is None:
            return
        if self.args.scale_rewards == "batch":
            words = "batch divides the rewards of all domains by one spread; take group or none"
            yield "args.scale_rewards", words
        if self.args.multi_objective_aggregation == "normalize_then_sum":
            words = "normalize_then_sum normalises over all domains together; take sum_then_normalize"
            yield "args.multi_objective_aggregation", words
        if self.advantage in ACROSS:
            baseline = self.advantage == "moving_average"
            what = "has a baseline over all domains" if baseline else "reads accuracy alone"
            yield "advantage", f"{self.advantage} {what}; with domains take one within a prompt's group"
        for key in ("dynamic_sampling", "replay"):
            if getattr(self, key):
                yield key, "it has its own order of prompts; remove it or domains"
        if self.args.shuffle_dataset and "shuffle_dataset" in self.args.model_fields_set:
            yield "args.shuffle_dataset", "domains have their own order; remove it"
        if self.args.max_steps <= 0:
            yield "args.max_steps", "missing; domains are mixed for all rollouts beforehand"

    @rule
    def _steps_to_aggregate(self) -> Iterator[Mistake]:
        """Yield keys with which `aggregation` cannot find or score the steps of a completion."""
        if self.aggregation is None:
            return
        if self.domains is not None:
            yield "aggregation", "the domains have different steps; remove it or domains"
        elif REWARD_MODEL not in (self.rewards or {}):
            yield "aggregation", "rewards.reward_model is missing, whose scores it combines"
        for key in ("ensemble", "tool"):
            if getattr(self, key):
                words = "aggregation needs one model and a policy's own text; remove one of them"
                yield key, words

    @rule
    def _own_objective(self) -> Iterator[Mistake]:
        """Yield mistakes of a user's objective: it is missing, or contradicts other keys."""
        if self.objective is None:
            return
        yield from own_mistakes("objective", self.objective)
        replaced: dict[str, object] = {
            "importance_ratio": self.importance_ratio,
            "clip_cov": self.clip_cov and "set",
            "kl_cov": self.kl_cov and "set",
        }
        if "loss_type" in self.args.model_fields_set:
            replaced["args.loss_type"] = self.args.loss_type
        for key, value in replaced.items():
            if value:
                words = f"{value}, but the objective {self.objective} replaces it; remove one of them"
                yield key, words

    @rule
    def _advantage(self) -> Iterator[Mistake]:
        """Yield keys that the chosen advantage would ignore, or cannot be combined with."""
        args, advantage = self.args, self.advantage
        if advantage in ACCURACY_ALONE:
            for name, weight in (self.rewards or {}).items():
                if name != "accuracy" and weight:
                    words = f"advantage {advantage} reads accuracy alone; give it weight 0"
                    yield f"rewards.{name}", words
        if advantage == "process":
            if isinstance(self.task, DataSet):
                words = "process needs a step verifier, which a data set does not have; use a world"
                yield "advantage", words
            sequence = args.importance_sampling_level == "sequence"
            if sequence or args.loss_type == "luspo":
                whole = "importance_sampling_level sequence" if sequence else "loss_type luspo"
                yield (
                    "advantage",
                    f"process gives each token its own, {whole} weighs whole sequences; importance_ratio "
                    "sequence_token does both",
                )
        if (advantage == "pass_at_k") != (self.pass_k is not None):
            yield "pass_k", "it is the k of advantage pass_at_k; give both or neither"
        elif self.pass_k and self.pass_k > (size := args.num_generations or 1):
            yield "pass_k", f"{self.pass_k} of the {size} responses of args.num_generations cannot be chosen"
        if advantage == "process" and self.learn_results:
            yield "learn_results", "advantage process reads steps off a policy's own text; remove one of them"
        if advantage == "above_mean" and args.scale_rewards != "group":
            yield "args.scale_rewards", "above_mean divides by the group's standard deviation; remove it"
        if advantage and args.multi_objective_aggregation == "normalize_then_sum":
            words = f"{advantage} reads the summed rewards; normalize_then_sum would be ignored"
            yield "advantage", words

    @rule
    def _ratio(self) -> Iterator[Mistake]:
        """Yield mistakes: two importance ratios, and keys that a ratio leaves without effect."""
        args, ratio = self.args, self.importance_ratio
        if ratio and args.importance_sampling_level == "sequence":
            words = f"{ratio} is itself a level; set importance_sampling_level to token"
            yield "importance_ratio", words
        if ratio == "none" and self.old_logp_noise:
            words = "without effect, because importance_ratio none has no old log-probabilities"
            yield "old_logp_noise", words
        if args.loss_type == "cispo":
            bound = args.epsilon if args.epsilon_high is None else args.epsilon_high
            if bound <= 1:
                yield (
                    "args.epsilon_high",
                    f"{bound} would cut every ratio; for loss_type cispo it is the largest ratio itself, "
                    "1 + the paper's epsilon",
                )
        if args.sync_ref_model and not args.beta:
            words = "with beta 0 there is no reference to replace; remove it"
            yield "args.sync_ref_model", words

    @rule
    def _held_back(self) -> Iterator[Mistake]:
        """Yield mistakes in what keeps tokens from learning: an empty range, or two rules for one thing."""
        if self.clip_cov and self.clip_cov.low >= self.clip_cov.high:
            yield "clip_cov.low", f"{self.clip_cov.low} is not below clip_cov.high {self.clip_cov.high}"
        if self.clip_cov and self.kl_cov:
            yield "kl_cov", "clip_cov holds back the same tokens; remove one of them"
        limited = "clip_cov" if self.clip_cov else "kl_cov" if self.kl_cov else None
        if limited and self.args.importance_sampling_level == "sequence":
            yield limited, "it chooses tokens, and importance_sampling_level sequence weighs whole sequences"
        if limited == "kl_cov" and self.importance_ratio == "none":
            yield limited, "it compares with old log-probabilities, which importance_ratio none does not have"
        if self.bottom_entropy_quantile is not None and self.args.top_entropy_quantile < 1:
            yield (
                "bottom_entropy_quantile",
                "args.top_entropy_quantile chooses tokens too; remove one of them",
            )

    @rule
    def _whole_steps(self) -> Iterator[Mistake]:
        """Yield a mistake if a rollout is not whole optimizer steps although the loss needs it."""
        if lengths := self.lengths:
            check_window(self.args.loss_type, lengths[1], lengths[0], self.units)
        yield from ()
