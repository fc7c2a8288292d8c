"""What papers, and the code they were made with, say of settings: further rows of the table of facts.

OURS are the numbers that no paper has and whose line in the recipe does not say so.
"""

SCRIPT = "2503.20783, script"
OAT = "2503.20783: oat's default"
NPLUS = "2403.17031, its code"


def rows(recipe, arm, name, source, **settings):
    """A row a setting; `args_` stands for `args.` in its name."""
    return [
        (recipe, arm, name, key.replace("args_", "args."), value, source) for key, value in settings.items()
    ]


LECTURE = {  # CS336 lecture 17, run_policy_gradient and compute_loss
    "learning_rate": 1e-3,
    "epochs": 100,
    "inner_steps": 10,
    "num_generations": 10,
    "prompts_per_epoch": 3,
    "reference_epochs": 10,
    "kl_coefficient": 0.0,
    "epsilon": 0.01,
    "delta": "raw",
    "loss": "naive",
    "temperature": 1.0,
}
OF_OAT = {
    "longest_prompt": 1024,
    "rewards.accuracy": 1.0,
    "args_learning_rate": 1e-6,
    "args_beta": 0.0,
    "args_num_generations": 8,
    "args_num_iterations": 1,
    "args_temperature": 1.0,
    "args_top_p": 1.0,
    "args_max_completion_length": 3000,
}
OAT_DEFAULTS = {"args_epsilon": 0.2, "args_adam_beta2": 0.95, "args_max_grad_norm": 1.0}
TO_A_TENTH = {
    "args.lr_scheduler_type": "cosine_with_min_lr",
    "args.lr_scheduler_kwargs": {"min_lr_rate": 0.1},
    "args_adam_beta2": 0.95,
    "args_max_length": 2048,
}
ADAMW = {"args_weight_decay": 0.01, "args_max_grad_norm": 0.0, "args_adam_epsilon": 1e-5}
PPO_OF_NPLUS = {
    "args_gamma": 1.0,
    "args_lam": 0.95,
    "args_vf_coef": 0.1,
    "args_epsilon": 0.2,
    "args_cliprange_value": 0.2,
    "args_num_iterations": 4,
    "args_learning_rate": 3e-6,
    "args_critic_learning_rate": 3e-6,
    "args_max_completion_length": 53,
}
STAGES = [
    # recipe, arm, stage, what, value, source
    *rows("r1_zero", "base-recipe", "grpo", "Nature, Methods", args_num_iterations=1, args_temperature=1.0),
    *rows("deepseekmath", "base-recipe", "grpo", "2402.03300 §4.2", args_num_iterations=1),
    *rows("dapo", "base-recipe", "grpo", "2503.14476 §4.1", args_temperature=1.0, args_warmup_steps=320),
    *rows("dapo", "base-recipe", "grpo", "the released script", args_top_p=1.0, args_max_grad_norm=1.0),
    *rows("gspo", "base-recipe", "grpo", "2507.18071 §2", rewards={"accuracy": 1.0}),
    *rows("dr_grpo", "base-recipe", "grpo", SCRIPT, **OF_OAT),
    *rows("objectives", "base-recipe", "grpo", SCRIPT, **OF_OAT, batch=128),
    *rows("reward_design", "outcome-only", "grpo", SCRIPT, **OF_OAT, batch=128),
    *(
        row
        for recipe in ("dr_grpo", "objectives", "reward_design")
        for row in rows(recipe, "base-recipe", "grpo", OAT, **OAT_DEFAULTS)
    ),
    *rows("instructgpt", "base-recipe", "sft", "2203.02155 App. C.3", **TO_A_TENTH),
    *rows(
        "instructgpt",
        "base-recipe",
        "sft_of_rm",
        "2203.02155 App. C.3: 6B",
        **TO_A_TENTH,
        args_learning_rate=1.04e-5,
        args_num_train_epochs=2,
        batch=32,
    ),
    *rows(
        "instructgpt",
        "base-recipe",
        "sft_baseline",
        "2203.02155 App. C.1",
        **TO_A_TENTH,
        args_learning_rate=9.65e-6,
        args_num_train_epochs=16,
        batch=32,
        args_model_init_kwargs={"hidden_dropout": 0.2},
    ),
    *rows(
        "instructgpt",
        "large",
        "sft_baseline",
        "2203.02155 App. C.1: 6B",
        args_learning_rate=9.65e-6,
        batch=32,
    ),
    *rows("instructgpt", "base-recipe", "reward_model", "2203.02155 App. C.2", **TO_A_TENTH),
    *rows(
        "instructgpt",
        "base-recipe",
        "ppo",
        "2203.02155 App. C",
        args_adam_beta2=0.95,
        args_max_completion_length=1000,
    ),
    *rows(
        "instructgpt",
        "base-recipe",
        "ppo",
        "2203.02155 App. C.4: from a tenth, then constant",
        args_lr_scheduler_type="warmup_stable_decay",
        args_lr_scheduler_kwargs={"min_lr_ratio": 0.1, "num_decay_steps": 0},
    ),
    ("instructgpt", "ptx", "ppo", "ptx.data.max_length", 2048, "2203.02155 App. C"),
    *(
        row
        for stage in ("sft", "reward_model", "ppo", "dpo")
        for row in rows("tldr", "base-recipe", stage, NPLUS, **ADAMW)
    ),
    ("tldr", "base-recipe", "sft", "args.completion_only_loss", False, NPLUS),
    *rows("tldr", "base-recipe", "ppo", NPLUS, args_top_p=1.0, args_critic_learning_rate=3e-6),
    *rows("tldr", "base-recipe", "dpo", NPLUS, args_num_train_epochs=1, args_max_length=638),
    *(
        row
        for arm, stage in (("base-recipe", "sft"), ("preferred-ft", "preferred"))
        for row in rows(
            "dpo", arm, stage, "2403.17031", args_learning_rate=3e-6, args_num_train_epochs=1, batch=128
        )
    ),
    *rows("dpo", "base-recipe", "reward_model", "2403.17031", args_learning_rate=3e-6, batch=64),
    *rows("dpo", "ppo", "ppo", "2403.17031", **PPO_OF_NPLUS),
    ("dpo", "ppo", "ppo", "batch", 1024, "2305.18290 App. C.1; 2403.17031: one minibatch"),
    ("overoptimization", "ensemble-worst", "reward_model", "members", 5, "2310.02743: ensembles of five"),
    ("dpo", "ppo", "ppo", "args.kl_target", 6.0, "2305.18290 §6.1: 3, 6, 9, 12"),
    *rows("rlaif", "base-recipe", "ppo", "2309.00267 App. F", args_vf_coef=1.0, args_cliprange_value=0.0),
    *rows(
        "rlaif",
        "base-recipe",
        "ppo",
        "2309.00267 App. G",
        args_critic_learning_rate=1e-5,
        args_max_steps=7295,
    ),
    *(
        row
        for i in (1, 2, 3)
        for row in (
            *rows(
                "iterative",
                "base-recipe",
                f"sample_{i}",
                "2401.10020 §3.1.3",
                args_num_generations=4,
                args_temperature=0.7,
                args_top_p=0.9,
            ),
            *rows(
                "iterative",
                "base-recipe",
                f"dpo_{i}",
                "2401.10020 §3.1.3",
                args_beta=0.1,
                args_learning_rate=1e-6,
                batch=16,
            ),
        )
    ),
    *rows(
        "policy_gradient",
        "base-recipe",
        "policy_gradient",
        "lecture 17",
        **{f"args_{name}": value for name, value in LECTURE.items()},
        problems=3,
        rewards={"inclusion_ordering": 1.0, "position": 0.0},
    ),
    (
        "policy_gradient",
        "position-raw",
        "policy_gradient",
        "rewards",
        {"inclusion_ordering": 0.0, "position": 1.0},
        "lecture 17, sort_distance_reward",
    ),
    *(
        (
            "policy_gradient",
            "base-recipe",
            stage,
            "task",
            {"world": "sort", "numbers": [3, 3], "largest": 4},
            "lecture 17, its prompts",
        )
        for stage in ("pretrain", "policy_gradient")
    ),
    *rows(
        "distill",
        "zero-32b",
        "rl",
        "2501.12948v2 B.4.1: as R1-Zero",
        args_beta=0.001,
        args_epsilon=10.0,
        args_num_generations=16,
        args_num_iterations=1,
        args_temperature=1.0,
        args_ref_model_mixup_alpha=1.0,
        args_ref_model_sync_steps=400,
        args_max_completion_length=32768,
    ),
    *(
        row
        for stage in ("zero", "reasoning", "scenarios", "preference")
        for row in rows("r1", "base-recipe", stage, "Nature, Methods", args_num_iterations=1)
    ),
]

R1 = {"temperature": 0.6, "top_p": 0.95, "max_gen_toks": 32768}
EVALUATIONS = [
    # recipe, task, field, value, source
    *(
        (recipe, "aime24", R1 | {"samples": 64}, "2501.12948v1 §3, v2 D.1")
        for recipe in ("r1_zero", "distill", "r1")
    ),
    ("r1", "aime24-zero", R1 | {"samples": 64}, "2501.12948v1 §3, v2 D.1"),
    *(
        (recipe, "math500", R1 | {"samples": 16}, "2501.12948v1 §3, v2 D.1")
        for recipe in ("r1_zero", "distill")
    ),
    *(
        (recipe, "aime24", {"items": 30}, "AIME 2024")
        for recipe in ("r1_zero", "distill", "r1", "dapo", "gspo")
    ),
    ("r1", "aime24-zero", {"items": 30}, "AIME 2024"),
    *(
        (recipe, "math500", {"items": 500}, "MATH-500")
        for recipe in ("r1_zero", "distill", "deepseekmath", "dr_grpo", "objectives", "reward_design")
    ),
    ("deepseekmath", "math500", {"temperature": 0.7, "samples": 64}, "2402.03300 §5.2.2, abstract: maj@64"),
    ("dapo", "aime24", {"temperature": 1.0, "top_p": 0.7, "samples": 32}, "2503.14476 §4.1"),
    ("dapo", "aime24", {"max_gen_toks": 20480}, "2503.14476 §4.1"),
    ("gspo", "aime24", {"samples": 32}, "2507.18071 §5.1"),
    *(
        (recipe, "math500", {"max_gen_toks": 3000}, SCRIPT)
        for recipe in ("dr_grpo", "objectives", "reward_design")
    ),
    ("dpo", "posts", {"items": 256, "max_gen_toks": 53}, "2305.18290 §6; 2403.17031"),
    ("dpo", "greedy", {"items": 256, "temperature": 0.0, "max_gen_toks": 53}, "2305.18290 §6.2; 2403.17031"),
    ("tldr", "posts", {"max_gen_toks": 53}, NPLUS),
    ("tldr", "nearly-greedy", {"temperature": 0.01, "top_p": 1.0, "max_gen_toks": 53}, NPLUS),
    ("iterative", "prompts", {"items": 256}, "2401.10020 §3.1.2"),
    ("instructgpt", "heldout", {"max_gen_toks": 1000}, "2203.02155 App. C"),
    (
        "policy_gradient",
        "heldout",
        {"task": {"world": "sort", "numbers": [3, 3], "largest": 4}},
        "lecture 17",
    ),
]

OURS: set[tuple[str, str, str]] = {  # recipe, stage or evals.<task>, path
    ("distill", "rl", "args.top_p"),
    ("distill", "sft", "args.model_init_kwargs.max_position_embeddings"),
    ("r1", "cold_start", "problems"),
    ("r1", "sft", "problems"),
    ("r1", "sft", "also.general.problems"),
    *(
        ("r1", stage, f"args.{name}")
        for stage in ("scenarios", "preference")
        for name in ("top_p", "max_completion_length")
    ),
    *(("r1", "preference", f"domains.{domain}.share") for domain in ("reasoning", "general")),
    *(("r1", "preference", f"domains.{domain}.rewards.english") for domain in ("reasoning", "general")),
    ("r1", "preference", "domains.reasoning.rewards.accuracy"),
    *(
        ("r1", "evals.requests", name)
        for name in ("items", "samples", "temperature", "top_p", "max_gen_toks")
    ),
}
