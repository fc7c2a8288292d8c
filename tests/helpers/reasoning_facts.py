"""What "limits of RLVR" and "stop summation" report of their settings, for test_paper_facts.py."""

from setting_facts import rows

YUE = "2504.13837 §4.3"
TABLE = "2504.13837 Table 2"
PURE = "CJReinforce/PURE, train_pure.sh"
LABELS = "CJReinforce/PURE, PRM/train_stage_2.sh"

STAGES = [
    # recipe, arm, stage, what, value, source
    *rows(
        "limits_of_rlvr",
        "base-recipe",
        "grpo",
        YUE,
        **{"rewards.accuracy": 1.0},
        args_beta=0.0,
        args_num_generations=8,
        args_temperature=1.0,
        args_generation_batch_size=128 * 8,
        args_max_completion_length=8192,
    ),
    ("limits_of_rlvr", "base-recipe", "grpo", "args.max_steps", 150 * 4, TABLE),
    ("limits_of_rlvr", "prolonged", "grpo", "args.max_steps", 450 * 4, TABLE),
    ("limits_of_rlvr", "dapo", "grpo", "args.epsilon_high", 0.28, "2503.14476 §4.1"),
    *rows(
        "process_supervision",
        "base-recipe",
        "reward_model",
        LABELS,
        args_learning_rate=1e-6,
        args_num_train_epochs=1,
        args_weight_decay=0.1,
        args_adam_beta2=0.95,
        global_batch=8 * 16,
    ),
    *rows(
        "process_supervision",
        "base-recipe",
        "grpo",
        PURE,
        aggregation="min",
        advantage="leave_one_out",
        longest_prompt=1024,
        global_batch=128,
        args_learning_rate=5e-7,
        args_beta=0.001,
        args_num_generations=4,
        args_temperature=0.5,
        args_generation_batch_size=64 * 4,
        args_per_device_train_batch_size=2,
        args_max_completion_length=2048,
        args_adam_beta2=0.95,
        args_max_grad_norm=1.0,
        args_epsilon=0.2,
        args_num_iterations=1,
    ),
    ("process_supervision", "base-recipe", "grpo", "rewards.reward_model", 1.0, "PURE-PRM"),
    ("process_supervision", "base-recipe", "grpo", "args.max_steps", 100 * 2, "PURE's README: step 100"),
    ("process_supervision", "summed", "grpo", "aggregation", "sum", "PURE's README: gamma decay"),
    ("process_supervision", "answers", "grpo", "rewards.accuracy", 1.0, "PURE-VR"),
]

EVALUATIONS = [
    # recipe, task, field, value, source
    *(
        (
            "limits_of_rlvr",
            task,
            {"temperature": 0.6, "top_p": 0.95, "samples": 256},
            "2504.13837 §2.2, Table 2",
        )
        for task in ("omni", "math500")
    ),
    ("limits_of_rlvr", "omni", {"items": 821, "max_gen_toks": 16384}, f"{YUE}, §2.2"),
    ("limits_of_rlvr", "math500", {"items": 500, "max_gen_toks": 16384}, "MATH-500; §2.2"),
    *(
        ("process_supervision", task, {"items": 500, "max_gen_toks": 2048}, "MATH-500; the cap of training")
        for task in ("math500", "math500-greedy")
    ),
    (
        "process_supervision",
        "math500-greedy",
        {"temperature": 0.0, "top_p": 1.0, "samples": 1},
        "PURE's README: pass@1 of Qwen's evaluation",
    ),
]

PUBLISHED = [
    # recipe, what, value, source
    ("limits_of_rlvr", "Omni-MATH test pass@1, Qwen2.5-7B", 10.2, TABLE),
    ("limits_of_rlvr", "Omni-MATH test pass@1 after 150 updates of GRPO", 25.1, TABLE),
    ("limits_of_rlvr", "Omni-MATH test pass@256, Qwen2.5-7B", 69.1, TABLE),
    ("limits_of_rlvr", "Omni-MATH test pass@256 after 150 updates of GRPO", 68.3, TABLE),
    ("limits_of_rlvr", "Omni-MATH test pass@256 after 450 updates of GRPO", 63.9, TABLE),
    ("process_supervision", "MATH, best of 1,860, process", 78.2, "2305.20050 Figure 3"),
    ("process_supervision", "MATH, best of 1,860, outcome", 72.4, "2305.20050 Figure 3"),
    ("process_supervision", "MATH, majority of 1,860", 69.6, "2305.20050 Figure 3"),
    ("process_supervision", "MATH-500, Qwen2.5-Math-7B", 71.8, "PURE's README"),
    ("process_supervision", "MATH-500, the same after RL by the least of the steps", 81.8, "PURE's README"),
]
