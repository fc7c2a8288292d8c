"""The fields of `args` in stages with rollouts: for GRPO, PPO, distillation, and CS336's policy gradient."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_core import InitErrorDetails

from encore.recipe.args import Args, Batch, Rate, Temperature, TopP, TrlArgs
from encore.recipe.base import AboveZero, NotNegative, Positive, mistake


class GrpoArgs(TrlArgs):
    """The `args` of a stage `grpo`, for TRL's GRPOTrainer. The equations are in encore/objectives/grpo.py."""

    config = "trl.trainer.grpo_config.GRPOConfig"

    learning_rate: Rate = 1e-6
    disable_dropout: bool = False
    # the objective
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo"] = "dapo"
    importance_sampling_level: Literal["token", "sequence"] = "token"
    epsilon: NotNegative = 0.2
    epsilon_high: NotNegative | None = None  # None: the same as epsilon
    delta: float | None = None
    sapo_temperature_neg: float = 1.05
    sapo_temperature_pos: float = 1.0
    beta: NotNegative = 0.0
    use_bias_correction_kl: bool = True
    sync_ref_model: bool = False
    ref_model_mixup_alpha: float = 0.6
    ref_model_sync_steps: int = 512
    entropy_coef: float = 0.0
    use_adaptive_entropy: bool = False
    entropy_coef_min: float = 0.0
    entropy_coef_max: float = 1.0
    entropy_coef_delta: float = 0.005
    entropy_target: float = 0.2
    top_entropy_quantile: float = 1.0
    off_policy_mask_threshold: float | None = None
    vllm_importance_sampling_correction: bool = (
        True  # if false, the gap between sampler and trainer is still measured
    )
    # the advantages
    scale_rewards: Literal["group", "batch", "none"] = "group"
    multi_objective_aggregation: str = "sum_then_normalize"
    mask_truncated_completions: bool = False
    # the rollout
    num_generations: Batch | None = 8
    num_iterations: Batch = 1
    generation_batch_size: Batch | None = None
    steps_per_generation: Batch | None = None
    shuffle_dataset: bool | None = True
    # the sampling
    temperature: Temperature = 1.0
    top_p: TopP = 1.0
    top_k: int = 0
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: float = 1.0
    max_completion_length: Positive | None = 512
    generation_kwargs: dict[str, object] | None = None
    cache_implementation: str | None = None
    use_transformers_continuous_batching: bool = False
    use_vllm: bool = False
    vllm_mode: Literal["server", "colocate"] = "colocate"
    vllm_model_impl: str = "vllm"
    vllm_enable_sleep_mode: bool = False
    vllm_server_timeout: float = 240.0
    vllm_gpu_memory_utilization: float = 0.3
    vllm_max_model_length: int | None = None
    vllm_tensor_parallel_size: int = 1

    @classmethod
    def further_mistakes(cls, value: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Yield also a mistake for TRL's loss vespo, which encore/objectives/grpo.py does not have."""
        yield from super().further_mistakes(value)
        if cls is GrpoArgs and value.get("loss_type") == "vespo":
            words = "encore/objectives/grpo.py has no loss vespo; write it as your own objective"
            yield mistake(("loss_type",), f"{words}, named by objective: my_module:loss (docs/objective.md)")


class PpoArgs(GrpoArgs):
    """The `args` of a stage `ppo`: GRPO's args, and PPO's own args under the names of TRL's PPO."""

    loss_type: Literal["dapo"] = "dapo"  # the mean over tokens; PPO has no other
    scale_rewards: Literal["none"] = "none"
    importance_sampling_level: Literal["token"] = "token"
    num_generations: Batch | None = 1  # 1, because the critic is the baseline and a prompt needs no group
    disable_dropout: bool = True
    kl_coef: NotNegative = 0.05
    kl_target: AboveZero | None = None  # nats per sequence that an adaptive coefficient aims at
    kl_gain: NotNegative = 0.1
    gamma: Annotated[float, Field(gt=0, le=1)] = 1.0
    lam: Annotated[float, Field(ge=0, le=1)] = 0.95
    vf_coef: NotNegative = 0.1
    cliprange_value: NotNegative = 0.2  # 0 means no clip
    whiten_rewards: bool = False
    whiten_advantages: bool = True
    missing_eos_penalty: float | None = None  # subtracted from the score of a completion that did not end
    missing_eos_score: float | None = None  # the score of a completion that did not end, instead of its own
    critic_learning_rate: Rate | None = None  # None: the same as learning_rate
    reshuffle: bool = True  # whether each epoch over a rollout has new minibatches


class DistillationArgs(GrpoArgs):
    """The `args` of a stage `distillation`: GRPO's args for the rollouts, batches and optimizer."""

    loss_type: Literal["dapo"] = "dapo"  # the mean over the tokens of a step; distillation has no other
    num_generations: Batch | None = 1  # 1, because no advantage compares completions


class PolicyGradientArgs(Args):
    """The `args` of a stage `policy_gradient`; the values of lecture 17 of CS336 are in its recipe."""

    learning_rate: Rate  # learning rate of Adam
    epochs: Positive  # number of rollouts, which the lecture calls epochs
    inner_steps: Positive  # number of updates on one rollout
    prompts_per_epoch: Positive
    num_generations: Batch  # number of responses to a prompt
    delta: Literal["raw", "centered", "normalized", "max"]
    loss: Literal["naive", "unclipped", "clipped"]
    max_completion_length: Positive
    epsilon: NotNegative = 0.01  # clip range of loss `clipped`
    log_ratio: bool = False  # whether to reproduce the lecture's defect: objectives.ratios.token_ratios
    reference_epochs: Positive = 10  # epochs after which the reference is renewed
    kl_coefficient: NotNegative = 0.0
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    temperature: Temperature = 1.0
