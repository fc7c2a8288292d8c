"""Fields of `args` by which a recipe would run foreign code, upload, or write elsewhere are refused.

Every field of transformers' and TRL's configurations is sorted here: those of ALLOWED do none of this, and
all others are refused. So a field that a newer TRL adds fails the test until someone has read what it does.
"""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from encore.errors import UserError
from encore.recipe.args import TrainerArgs, check_refused
from encore.recipe.kinds import KINDS, args_of
from encore.recipe.layers import check_layers

OF_TRL = (
    "pretrain",
    "grpo",
    "ppo",
    "distillation",
    "dpo",
    "kto",
    "sft",
    "reward_model",
)  # kinds with a configuration of a Trainer's
ALLOWED = {
    "the objective": """
        beta delta discopop_tau entropy_coef entropy_coef_delta entropy_coef_max entropy_coef_min
        entropy_target epsilon epsilon_high f_alpha_divergence_coef f_divergence_type
        importance_sampling_level label_smoothing label_smoothing_factor ld_alpha loss_type loss_weights
        mask_truncated_completions multi_objective_aggregation num_iterations off_policy_mask_threshold
        router_aux_loss_coef sapo_temperature_neg sapo_temperature_pos scale_rewards top_entropy_quantile
        use_adaptive_entropy use_bias_correction_kl use_weighting vespo_k_neg vespo_k_pos vespo_lambda_neg
        vespo_lambda_pos vllm_importance_sampling_cap vllm_importance_sampling_clip_max
        vllm_importance_sampling_clip_min vllm_importance_sampling_correction vllm_importance_sampling_mode
        center_rewards_coefficient assistant_only_loss completion_only_loss disable_dropout
        neftune_noise_alpha cast_lm_head_to_fp32 sync_ref_model ref_model_mixup_alpha ref_model_sync_steps
        precompute_ref_log_probs precompute_ref_batch_size desirable_weight undesirable_weight""",
    "PPO's own": """
        kl_coef kl_target kl_gain gamma lam vf_coef cliprange_value whiten_rewards whiten_advantages
        missing_eos_penalty missing_eos_score critic_learning_rate reshuffle""",
    "the optimizer": """
        adam_beta1 adam_beta2 adam_epsilon learning_rate lr_scheduler_kwargs lr_scheduler_type max_grad_norm
        max_steps num_train_epochs optim optim_args optim_target_modules warmup_steps weight_decay""",
    "batches": """
        auto_find_batch_size average_tokens_across_devices generation_batch_size gradient_accumulation_steps
        per_device_eval_batch_size per_device_train_batch_size steps_per_generation num_generations
        num_generations_eval train_sampling_strategy""",
    "the data": """
        dataloader_drop_last dataloader_in_order dataloader_multiprocessing_context dataloader_num_workers
        dataloader_persistent_workers dataloader_prefetch_factor dataset_kwargs dataset_num_proc
        dataset_text_field eval_packing ignore_data_skip label_names length_column_name max_length packing
        packing_strategy pad_to_multiple_of padding_free remove_unused_columns shuffle_dataset
        truncation_mode""",
    "sampling": """
        cache_implementation generation_kwargs max_completion_length max_tool_calling_iterations min_p
        repetition_penalty temperature top_k top_p transformers_continuous_batching_config
        use_transformers_continuous_batching use_transformers_paged use_vllm vllm_enable_sleep_mode
        vllm_gpu_memory_utilization vllm_max_model_length vllm_mode vllm_model_impl vllm_server_timeout
        vllm_structured_outputs_regex vllm_tensor_parallel_size""",
    "the machine": """
        accelerator_config activation_offloading bf16 bf16_full_eval ddp_backend ddp_broadcast_buffers
        ddp_bucket_cap_mb ddp_static_graph ddp_timeout ds3_gather_for_generation fp16 fp16_full_eval
        gradient_checkpointing gradient_checkpointing_kwargs local_rank model_init_kwargs
        skip_memory_metrics tf32 torch_compile torch_compile_backend torch_compile_mode
        torch_empty_cache_steps use_cache use_cpu use_liger_kernel""",
    "evaluation in training": """
        batch_eval_metrics do_eval do_predict do_train eval_accumulation_steps eval_delay
        eval_do_concat_batches eval_on_start eval_steps eval_strategy eval_use_gather_object
        greater_is_better include_for_metrics load_best_model_at_end metric_for_best_model
        prediction_loss_only""",
    "what is logged, and saved in the stage's folder": """
        debug include_num_input_tokens_seen log_level log_level_replica log_on_each_node
        logging_first_step logging_steps logging_strategy restore_callback_states_from_checkpoint
        save_on_each_node save_steps save_strategy save_total_limit""",
}
# of transformers' from_pretrained: all other keys of model_init_kwargs are of the model's configuration
ALLOWED_LOADING = {
    *("dtype", "torch_dtype", "attn_implementation", "experts_implementation"),
    *("quantization_config", "fusion_config", "ignore_mismatched_sizes", "variant", "disable_mmap"),
}


def refused(args: dict[str, object]) -> bool:
    try:
        check_refused(args, "args")
    except UserError:
        return True
    return False


def loading_arguments() -> set[str]:
    """The arguments of `from_pretrained` of models, and those that it takes out of its `kwargs`."""
    names = {"code_revision"}
    home = Path(find_spec("transformers").submodule_search_locations[0])
    for file, owner in (
        ("modeling_utils.py", "PreTrainedModel"),
        ("models/auto/auto_factory.py", "_BaseAutoModelClass"),
    ):
        tree = ast.parse((home / file).read_text(encoding="utf-8"))
        classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == owner)
        for function in (node for each in classes for node in each.body if isinstance(node, ast.FunctionDef)):
            if function.name != "from_pretrained":
                continue
            names |= {arg.arg for arg in (*function.args.args, *function.args.kwonlyargs)}
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if ast.unparse(call.func) in ("kwargs.pop", "hub_kwargs.pop") and len(call.args):
                    names |= {call.args[0].value} if isinstance(call.args[0], ast.Constant) else set()
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "hub_kwargs_names":
                    names |= {*ast.literal_eval(node.value)}
    return {name for name in names if not name.startswith("_")} - {"cls", "pretrained_model_name_or_path"}


def test_every_field_of_trl_is_sorted():
    fields = {name for kind in OF_TRL for name in args_of(kind).names()}
    allowed = " ".join(ALLOWED.values()).split()
    assert len(allowed) == len(set(allowed))
    assert {name for name in fields if not refused({name: "x"})} == set(allowed)


def test_every_argument_of_loading_a_model_is_sorted():
    names = loading_arguments()
    assert {"trust_remote_code", "cache_dir", "dtype", "code_revision", "use_kernels"} <= names
    assert {name for name in names if not refused({"model_init_kwargs": {name: "x"}})} == ALLOWED_LOADING


def test_kinds_with_a_configuration_of_trl():
    with_trainer = {kind for kind in KINDS if args_of(kind) and "output_dir" in args_of(kind).names()}
    assert with_trainer == {
        kind for kind in KINDS if args_of(kind) and issubclass(args_of(kind), TrainerArgs)
    }
    assert with_trainer == set(OF_TRL)


@pytest.mark.parametrize(
    ("run", "args", "message"),
    [
        (
            "grpo",
            {"trust_remote_code": True},
            "trust_remote_code: it would run code of a model's folder; remove it",
        ),
        ("sft", {"push_to_hub": True}, "push_to_hub: it would reach the network; remove it"),
        ("dpo", {"hub_token": "x"}, "hub_token: it would reach the network; remove it"),
        ("grpo", {"log_completions_hub_repo": "a/b"}, "log_completions_hub_repo: it would reach the network"),
        (
            "grpo",
            {"log_completions": True},
            "log_completions: completions.jsonl has all completions; remove it",
        ),
        ("pretrain", {"run_name": "x"}, "run_name: set by the stage itself; remove it"),
        ("reward_model", {"chat_template_path": "a/b"}, "chat_template_path: it is the policy's"),
        (
            "grpo",
            {"liger_kernel_config": {"cross_entropy": True}},
            "liger_kernel_config: the losses are TRL's, and use_liger_kernel takes the rest; remove it",
        ),
        ("sft", {"full_determinism": True}, "full_determinism: set by the stage itself; write deterministic"),
        (
            "grpo",
            {"model_init_kwargs": {"trust_remote_code": True}},
            "model_init_kwargs.trust_remote_code: it would run code of a model's folder; remove it",
        ),
        (
            "ppo",
            {"model_init_kwargs": {"attn_implementation": "someone/kernel"}},
            'model_init_kwargs.attn_implementation: unknown value the text "someone/kernel"; valid: eager, ',
        ),
        (
            "sft",
            {"model_init_kwargs": '{"trust_remote_code": true}'},
            "model_init_kwargs: expected a mapping or null, got the text",
        ),
        (
            "sft",
            {"model_init_kwargs": {"_name_or_path": "a/b"}},
            'model_init_kwargs: expected a name of lower-case letters, digits and "_", got "_name_or_path"',
        ),
    ],
)
def test_what_reaches_out_of_the_stage_is_refused(run, args, message):
    with pytest.raises(UserError) as error:
        check_layers({"stages": {"own": {"run": run, "args": args}}, "scales": {}, "arms": {}})
    assert error.value.lines[0].startswith(f"stages.own.args.{message}")


def test_what_a_models_configuration_has_is_not_refused():
    args = {"model_init_kwargs": {"dtype": "bfloat16", "hidden_dropout": 0.2, "rope_parameters": {"a": 1}}}
    check_layers({"stages": {"own": {"run": "sft", "args": args}}, "scales": {}, "arms": {}})


@pytest.mark.parametrize(
    ("key", "value"),
    [("trust_remote_code", True), ("worker_cls", "module.Class"), ("hf_token", "x"), ("download_dir", "/")],
)
def test_engine_arguments_of_vllm_that_reach_out_are_refused(folder, key, value):
    folder.set("paper", "evals/backend_args", {key: value})
    assert f"evals.backend_args.{key}: unknown key" in folder.mistake()
