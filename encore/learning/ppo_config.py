"""The arguments of stage `ppo`: those of TRL's GRPOConfig, and PPO's own under the names of TRL's PPO."""

from dataclasses import dataclass
from typing import Any

from trl.trainer.grpo_config import GRPOConfig

# field of GRPOConfig -> the only value that has a meaning in PPO, and why
FIXED: dict[str, tuple[Any, str]] = {
    "loss_type": ("dapo", "PPO's is the mean over the tokens of an optimizer step, which TRL calls dapo"),
    "beta": (0.0, "the KL is in the reward; its coefficient is kl_coef"),
    "importance_sampling_level": ("token", "PPO's ratio is a token's"),
    "mask_truncated_completions": (False, "missing_eos_penalty or missing_eos_score punishes truncation"),
    "sync_ref_model": (False, "the reference of PPO stays as it is"),
    "multi_objective_aggregation": ("sum_then_normalize", "the score is the weighted sum of the rewards"),
    "fp16": (False, "the critic's optimizer scales no gradients; bf16 needs no scaling"),
    "top_entropy_quantile": (1.0, "the critic learns from all tokens, and so must the policy"),
}


@dataclass(eq=False, repr=False)
class PPOConfig(GRPOConfig):
    """Raises ValueError for values out of range. GRPOConfig's `scale_rewards` has no effect."""

    num_generations: int | None = 1  # the critic is the baseline: a prompt needs no group
    loss_type: str = "dapo"
    scale_rewards: str = "none"
    disable_dropout: bool = True
    kl_coef: float = 0.05
    kl_target: float | None = None  # nats a sequence: adaptive coefficient
    kl_gain: float = 0.1
    gamma: float = 1.0
    lam: float = 0.95
    vf_coef: float = 0.1
    cliprange_value: float = 0.2  # 0: no clip
    whiten_rewards: bool = False
    whiten_advantages: bool = True
    missing_eos_penalty: float | None = None  # subtracted from the score of a completion that did not end
    missing_eos_score: float | None = None  # replaces that score
    critic_learning_rate: float | None = None  # default: learning_rate
    reshuffle: bool = True  # new minibatches in each epoch over a rollout

    def __post_init__(self) -> None:
        for name, (value, why) in FIXED.items():
            if getattr(self, name) not in (value, None):
                raise ValueError(f"{name}: expected {value}, got {getattr(self, name)}: {why}")
        for name in ("gamma", "lam"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: expected a number from 0 to 1, got {getattr(self, name)}")
        for name in ("kl_coef", "kl_gain", "vf_coef", "cliprange_value"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: expected at least 0, got {getattr(self, name)}")
        if self.kl_target is not None and (self.kl_target <= 0 or not self.kl_coef):
            raise ValueError("kl_target: expected more than 0, and a kl_coef above 0 to start from")
        if self.missing_eos_penalty is not None and self.missing_eos_score is not None:
            raise ValueError("missing_eos_score: missing_eos_penalty is given too; remove one of them")
        alone = self.num_generations == 1
        if alone:  # TRL refuses it, because it takes advantages from groups
            steps = self.steps_per_generation or self.gradient_accumulation_steps
            self.num_generations = self.generation_batch_size or self.per_device_train_batch_size * steps
            if self.num_generations < 2:
                raise ValueError(
                    "per_device_train_batch_size x steps_per_generation: expected at least 2, got 1"
                )
        super().__post_init__()
        if alone:
            self.num_generations = 1
        if self.critic_learning_rate is None:
            self.critic_learning_rate = self.learning_rate
