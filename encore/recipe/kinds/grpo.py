"""Stage `grpo`: the policy is trained by GRPO, or by an objective of its family."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from encore.recipe.base import Identifier, Model, NotNegative, PartOfAll, Positive, Share, matching
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.stage import RawTask, TrueOrChat, Weights
from encore.recipe.rl_args import GrpoArgs

Step = Annotated[str, AfterValidator(matching("0|[1-9][0-9]*", "a number of optimizer steps"))]
Around = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=2, max_length=2)
]


class Tool(Model):
    """What the policy may call: encore/sampling/tools.py."""

    name: Literal["calculator", "python"]  # python: in the sandbox
    calls: Positive  # answered in one completion; further ones are not
    longest: Positive  # tokens of a result; what is longer is cut
    call: Around | None = None  # the texts around a call; the second is one token
    result: Around | None = None  # and around its result


class Domain(Model):
    """One of several tasks of a stage, with its share of the prompts and its rewards."""

    task: RawTask | None = None
    template: str | None = None
    chat: TrueOrChat | None = None
    problems: Positive | None = None  # distinct training problems
    longest_prompt: Positive | None = None
    share: PartOfAll | None = None  # of the prompts; all shares come to 1
    rewards: Weights | None = None


class MixedGroups(Model):
    """Prompts are sampled in rounds until every group of the rollout has mixed outcomes (DAPO, Eq. 11)."""

    max_rounds: Positive


class Replay(Model):
    """From the second iteration on, a share of the prompts are earlier ones (DeepSeekMath, §4.1.4)."""

    every: Positive  # optimizer steps of an iteration
    share: Share


class GrpoStage(RolloutStage):
    """The policy is trained by GRPO or an objective of its family."""

    stands_for = {
        "chat": ("template",),
        "domains": ("task", "template", "rewards"),
        "caps": ("max_completion_length",),
        "global_batch": ("gradient_accumulation_steps",),
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
    args: GrpoArgs = GrpoArgs()
    # leave out prompts that share 13 words in a row with a data set of evals.tasks
    # (encore/data/decontamination.py)
    decontaminate: bool = False
    # Of a reward model with `labels`, in place of its score: the chance that the answer is right (last), that
    # of every step, the answer among them (product), the least of these (min), or their sum:
    # encore/rewards/learned.py
    aggregation: Literal["last", "product", "min", "sum"] | None = None
    # In place of task, template, problems and rewards: several tasks. Every rollout has each domain's share
    # of the prompts (where that is no whole number, the running sum comes as near to it as it can), and a
    # prompt has the rewards of its domain alone. All that a domain names is measured, also at weight 0.
    domains: dict[Identifier, Domain] | None = None
    # In place of args.max_completion_length: {step: cap}, the cap of all rollouts after so many optimizer
    # steps, rising from step 0 on. Where loss_type dr_grpo divides by the cap, and for soft_overlong, it is
    # the one of the rollout.
    caps: dict[Step, Positive] | None = None
    # Below: what TRL cannot be told by `args`. Without these keys the objective is TRL's. the advantage, in
    # place of TRL's; equations: encore/objectives/advantages.py, of process: process_supervision.py
    advantage: Literal["leave_one_out", "moving_average", "raw", "best", "positive", "process"] | None = None
    # none: policy gradient without a ratio, however often a rollout is used; sequence_token: GSPO, Eq. 13-14
    importance_ratio: Literal["none", "sequence_token"] | None = None
    dynamic_sampling: MixedGroups | None = None
    # standard deviation in nats of noise on old log-probabilities, as if the sampler differed from the policy
    old_logp_noise: NotNegative = 0.0
    replay: Replay | None = None
    tool: Tool | None = (
        None  # that the policy may call; args.max_completion_length counts its own tokens alone
    )
    learn_results: bool = False  # what the tool says is in the loss too
