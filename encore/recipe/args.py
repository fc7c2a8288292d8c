"""The fields that `args` of a stage may have: the arguments of a Trainer, or of drawing completions.

The classes here write out the fields that recipes set or that Encore's code reads; a test checks that their
defaults are the defaults of the installed trainers. All other fields of a trainer's class are allowed too:
their names and types are read from the source of the class (trl_fields.py). The arguments of RL are in
grpo_args.py.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import InitErrorDetails

from encore.errors import UserError, nearest
from encore.recipe import trl_fields
from encore.recipe.base import (
    AN_IDENTIFIER,
    IDENTIFIER,
    AboveZero,
    Items,
    Model,
    NotNegative,
    Positive,
    mistake,
    refuse,
    unknown_key,
)
from encore.recipe.mistakes import shown

# reason why no recipe may set a field -> the fields; tests/encore/recipe/test_refused_fields.py checks that
# each field of a trainer is either allowed there or refused here
RESERVED = {
    "set by the stage itself": """
        output_dir seed data_seed reward_weights chat_template_kwargs report_to project run_name
        disable_tqdm logging_nan_inf_filter resume_from_checkpoint enable_jit_checkpoint save_only_model
        dataloader_pin_memory ddp_find_unused_parameters vllm_server_base_url vllm_server_host
        vllm_server_port vllm_group_port""",
    "it would run code of a model's folder": "trust_remote_code",
    "it would reach the network": """
        push_to_hub hub_model_id hub_token hub_strategy hub_revision hub_private_repo hub_always_push
        log_completions_hub_repo trackio_space_id trackio_bucket_id trackio_static_space_id""",
    "it is the policy's, or says nothing beside the key chat": "chat_template_path eos_token pad_token",
    "completions.jsonl has all completions": """
        log_completions log_unique_prompts log_multimodal num_completions_to_print""",
    "the losses are TRL's, and use_liger_kernel takes the rest": "liger_kernel_config",
}
# The same for keys of model_init_kwargs. Keys that transformers does not read itself go to the model's
# configuration.
RESERVED_OF_MODELS = {
    "set by the stage itself": """
        config generation_config state_dict adapter_kwargs adapter_name key_mapping output_loading_info
        tqdm_class revision subfolder gguf_file use_safetensors weights_only device_map max_memory
        offload_buffers device_mesh distributed_config tp_plan tp_size""",
    "it would run code of a model's folder": "trust_remote_code code_revision auto_map",
    "it would run code of the Hub": "use_kernels kernel_config allow_all_kernels",
    "it would reach the network": "token proxies force_download local_files_only",
    "it would write outside of the stage's folder": "cache_dir offload_folder",
}
SHARDING = ("fsdp", "fsdp_config", "deepspeed", "parallelism_config")  # `resources: {shard: …}` sets these

Rate = Annotated[float, Field(gt=0, le=100)]
Batch = Annotated[int, Field(ge=1, le=1_000_000)]
Temperature = Annotated[float, Field(gt=0, le=100)]
TopP = Annotated[float, Field(gt=0, le=1)]


def _refusals(reasons: Mapping[str, str]) -> dict[str, str]:
    return {name: f"{why}; remove it" for why, names in reasons.items() for name in names.split()}


REFUSED, REFUSED_OF_MODELS = _refusals(RESERVED), _refusals(RESERVED_OF_MODELS)
REFUSED |= dict.fromkeys(SHARDING, "set by the stage itself; write resources: {shard: fsdp} instead")
REFUSED["full_determinism"] = "set by the stage itself; write deterministic: true beside args instead"


def _one_of(enumeration: str) -> AfterValidator:
    """Return a validator that accepts only the values of `enumeration`, a class of transformers."""

    def member(text: str) -> str:
        if text not in (valid := trl_fields.enumeration(enumeration)):
            refuse(f"unknown value {shown(text)}{nearest(text, valid)}")
        return text

    return AfterValidator(member)


Scheduler = Annotated[str, _one_of("transformers.trainer_utils.SchedulerType")]
Optimizer = Annotated[str, _one_of("transformers.training_args.OptimizerNames")]
Interval = Annotated[str, _one_of("transformers.trainer_utils.IntervalStrategy")]
SaveInterval = Annotated[str, _one_of("transformers.trainer_utils.SaveStrategy")]


def check_refused(args: Mapping[str, Any], path: str) -> None:
    """Raise UserError if a stage's `args` or `model_init_kwargs` have a field that no recipe may set."""
    options = args.get("model_init_kwargs")
    of_models = options if isinstance(options, Mapping) else {}
    told = [f"{path}.{name}: {REFUSED[name]}" for name in args if name in REFUSED]
    told += [
        f"{path}.model_init_kwargs.{name}: {REFUSED_OF_MODELS[name]}"
        for name in of_models
        if name in REFUSED_OF_MODELS
    ]
    if told:
        raise UserError("\n".join(told))


class Args(Model):
    """The `args` of a stage. A field may be null if its type includes None."""

    takes_null = True

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all fields, including fields that no recipe may set."""
        return list(cls.model_fields)


class TrainerArgs(Args):
    """The `args` of a Trainer.

    Fields of the trainer's class that no class below writes out are checked for their names and types only.
    """

    model_config = ConfigDict(extra="allow")
    config: ClassVar[str]  # the dataclass that has these fields

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the fields of the trainer's class, then the names that Encore adds.

        Raises UserError if the source of the trainer's class cannot be read.
        """
        try:
            return [*dict.fromkeys((*trl_fields.fields(cls.config), *cls.model_fields))]
        except (ImportError, OSError) as error:
            raise UserError(f"{cls.config}: its fields cannot be read: {error}") from None

    @classmethod
    def further_mistakes(cls, value: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Yield mistakes: fields that no recipe may set, unknown names, and wrong types."""
        for name, content in value.items():
            if name in REFUSED:
                yield mistake((name,), REFUSED[name])
                continue
            if name in cls.model_fields:
                continue
            if name not in cls.names():
                yield mistake((name,), unknown_key(name, cls.names()))
            elif told := trl_fields.mistake(trl_fields.fields(cls.config)[name], content):
                yield mistake((name,), told)


class Loading(Model):
    """The keys of `args.model_init_kwargs`: options of loading a model, and values of its configuration."""

    model_config = ConfigDict(extra="allow")
    takes_null = True
    # other names are kernels on the Hub, whose code would run
    attn_implementation: (
        Literal["eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"] | None
    ) = None
    experts_implementation: Literal["eager", "batched_mm", "grouped_mm"] | None = None

    @classmethod
    def further_mistakes(cls, value: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        """Yield a mistake for each key that no recipe may set, or that cannot be the name of an argument."""
        for name in value:
            if name in REFUSED_OF_MODELS:
                yield mistake((name,), REFUSED_OF_MODELS[name])
            elif not re.fullmatch(IDENTIFIER, name):
                yield mistake((), f'expected {AN_IDENTIFIER}, got "{name}"')


class TrainingArgs(TrainerArgs):
    """The `args` of a stage `pretrain`, for transformers' Trainer. TRL's trainers have them too."""

    config = "transformers.training_args.TrainingArguments"

    learning_rate: Rate = 5e-5
    lr_scheduler_type: Scheduler = "linear"
    lr_scheduler_kwargs: dict[str, Any] | None = None
    warmup_steps: NotNegative = 0.0  # steps, or a share of all steps if below 1
    max_steps: Positive = -1  # -1 means that num_train_epochs decides
    num_train_epochs: Annotated[float, Field(gt=0, le=1_000_000)] = 3.0
    per_device_train_batch_size: Batch = 8
    per_device_eval_batch_size: Batch = 8
    gradient_accumulation_steps: Batch = 1
    optim: Optimizer = "adamw_torch_fused"
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-8
    weight_decay: Annotated[float, Field(ge=0, le=100)] = 0.0
    max_grad_norm: NotNegative = 1.0  # 0 means that gradients are not clipped
    bf16: bool = False
    fp16: bool = False
    # whether norms, rotary positions and MLPs are computed by Liger's kernels, on a GPU
    use_liger_kernel: bool = False
    gradient_checkpointing: bool = False
    gradient_checkpointing_kwargs: dict[str, Any] | None = None
    torch_empty_cache_steps: Positive | None = None
    dataloader_num_workers: Annotated[int, Field(ge=0, le=1024)] = 0  # number of loading processes
    logging_steps: AboveZero = 500  # steps between two log lines, or a share of all steps if below 1
    eval_strategy: Interval = "no"
    eval_steps: AboveZero | None = None
    eval_on_start: bool = False
    save_strategy: SaveInterval = "steps"
    save_steps: AboveZero = 500
    save_total_limit: int | None = None


class TrlArgs(TrainingArgs):
    """The arguments that TRL's trainers have in common."""

    bf16: bool | None = None  # type: ignore[assignment]  # None: true if the machine supports bf16 and fp16 is not set
    gradient_checkpointing: bool = True
    logging_steps: AboveZero = 10
    model_init_kwargs: Loading | None = None


class SftArgs(TrlArgs):
    """The `args` of a stage `sft`, for TRL's SFTTrainer."""

    config = "trl.trainer.sft_config.SFTConfig"

    learning_rate: Rate = 2e-5
    loss_type: Literal["nll", "dft"] = "nll"
    max_length: Positive | None = 1024
    truncation_mode: str = "keep_start"
    shuffle_dataset: bool = False
    completion_only_loss: bool | None = None


class PairsArgs(TrlArgs):
    """The arguments that TRL's trainers on pairs have in common."""

    learning_rate: Rate = 1e-6
    beta: NotNegative = 0.1
    max_length: Positive | None = 1024
    sync_ref_model: bool = False
    ref_model_sync_steps: int = 512
    disable_dropout: bool = True
    precompute_ref_log_probs: bool = False


class DpoArgs(PairsArgs):
    """The `args` of a stage `dpo`, for TRL's DPOTrainer."""

    config = "trl.trainer.dpo_config.DPOConfig"

    loss_type: Items[str] = ("sigmoid",)
    loss_weights: Items[float] | None = None
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    truncation_mode: str = "keep_start"


class KtoArgs(PairsArgs):
    """The `args` of a stage `kto`, for TRL's KTOTrainer."""

    config = "trl.trainer.kto_config.KTOConfig"

    loss_type: Literal["kto"] = "kto"  # apo_zero is a loss of stage dpo
    desirable_weight: NotNegative = 1.0
    undesirable_weight: NotNegative = 1.0
    train_sampling_strategy: Literal["sequential"] = "sequential"  # which TRL demands; the order is Encore's


class RewardArgs(TrlArgs):
    """The `args` of a stage `reward_model`, for TRL's RewardTrainer."""

    config = "trl.trainer.reward_config.RewardConfig"

    learning_rate: Rate = 1e-4
    max_length: Positive | None = 1024
    center_rewards_coefficient: NotNegative | None = None
    disable_dropout: bool = True


class DrawingArgs(Args):
    """The arguments of a stage that draws completions."""

    num_generations: Batch  # number of completions of each problem
    temperature: Temperature
    top_p: TopP
    max_completion_length: Positive


class RejectionSamplingArgs(DrawingArgs):
    """The `args` of a stage `rejection_sampling`."""

    # number of right completions to keep for each problem, the first ones; None: all
    max_per_problem: Positive | None = None
