"""What stages `grpo` and `ppo` have in common: the policy is trained on rollouts of its own."""

from typing import Literal

from encore.recipe.base import Positive
from encore.recipe.kinds.stage import Asking, Dtype, Lora, Source, Weights


class RolloutStage(Asking):
    """The policy is trained on rewards of its own completions."""

    required = ("task", "template", "rewards", "args")

    longest_prompt: Positive | None = None  # in tokens; longer prompts are left out
    # Keeps the model after every so many optimizer steps, on disk beside the product, and measures it on the
    # tasks of the checkpoint that is the stage, by a job each: evals/<checkpoint>_step<n>.json, and a figure
    # of the report.
    evaluate_every: Positive | None = None
    # Examples, here completions, of an optimizer step. Where it is given, the number of GPUs decides how many
    # fall to each, and in how many micro-batches of at most args.per_device_train_batch_size; on several GPUs
    # it must be. A rollout then has args.generation_batch_size completions.
    global_batch: Positive | None = None
    model: Source | None = None
    saved_dtype: Dtype | None = None  # as in stage pretrain
    # by name: a function of encore/rewards/rules.py, or of the task's world; my_module:function; reward_model
    rewards: Weights | None = None
    # how the scores of the reward model's members are combined; default: mean
    ensemble: Literal["mean", "worst"] | None = None
    # of the policy, and in PPO of the critic's backbone, whose head is trained whole; the reference is the
    # policy without adapters, or needs.reference
    lora: Lora | None = None
    soft_overlong_cache: Positive | None = (
        None  # tokens before the cap over which reward soft_overlong falls (DAPO, Eq. 13)
    )
    # encore/sampling/decoding.py, for small models; default: transformers, or vLLM by args.use_vllm
    sampler: Literal["lean"] | None = None
    # With args.vllm_mode: server, which the stage then starts and ends: its GPUs, on the same node, beside
    # those of resources.gpu. Not part of the lineage.
    vllm_gpus: Positive | None = None
