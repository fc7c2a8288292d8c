"""Stage `ppo`: the policy is trained by PPO, with a critic."""

from typing import Literal

from encore.recipe.base import HubName, Model, NotNegative, Positive, Revision
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import Corpus, RawTask
from encore.recipe.rl_args import PpoArgs


class HubDocuments(Model):
    """The first rows of a Hub dataset."""

    hub: HubName
    revision: Revision
    subset: str | None = None
    split: str
    text: str  # column
    documents: Positive
    max_length: Positive  # tokens; the rest of a document is cut


class Ptx(Model):
    """Each update also learns from documents (InstructGPT, Eq. 2), of a world or of a Hub dataset."""

    coefficient: NotNegative
    # documents in a micro-batch; with global_batch: in an optimizer step
    batch_size: Positive
    task: RawTask | None = None  # with template and corpus: as in stage pretrain
    template: str | None = None
    corpus: Corpus | None = None
    data: HubDocuments | None = None


class PpoStage(RolloutStage):
    """The policy is trained by PPO."""

    data_set = "task-hub-prompts"
    stands_for = {"chat": ("template",), "global_batch": ("gradient_accumulation_steps",)}
    written_out = (
        *("kl_coef", "gamma", "lam", "vf_coef", "cliprange_value", "whiten_rewards", "whiten_advantages"),
        *("reshuffle", "num_iterations"),
        ("steps_per_generation", "generation_batch_size"),
        *(
            "gradient_accumulation_steps",
            "epsilon",
            "temperature",
            "top_p",
            "lr_scheduler_type",
            "learning_rate",
        ),
        *("critic_learning_rate", "max_completion_length", "vllm_importance_sampling_correction"),
    )

    run: Literal["ppo"]
    # the KL is measured against reference; default: policy
    needs: dict[Literal["policy", "reward_model", "reference"], str] = {}
    args: PpoArgs = PpoArgs()
    # what it starts from; default: the reward model if there is one, else the policy
    critic: Literal["reward_model", "policy", "random"] | None = None
    ptx: Ptx | None = None
