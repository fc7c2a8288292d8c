"""What DeepSeek-R1 says of distillation: settings of stages at scale paper, and published numbers."""

STUDENTS = {  # arm -> base model, initial learning rate: v2 B.4.3
    "base-recipe": ("Qwen/Qwen2.5-32B", 6e-5),
    "distilled-14b": ("Qwen/Qwen2.5-14B", 7e-5),
    "distilled-7b": ("Qwen/Qwen2.5-Math-7B", 8e-5),
    "distilled-1.5b": ("Qwen/Qwen2.5-Math-1.5B", 1e-4),
}
RATE = "args.learning_rate"
STAGES = [
    # recipe, arm, stage, what, value, source
    *(("distill", arm, "sft", "model.hub", hub, "2501.12948 Table 5") for arm, (hub, _) in STUDENTS.items()),
    *(("distill", arm, "sft", RATE, rate, "2501.12948v2 B.4.3") for arm, (_, rate) in STUDENTS.items()),
    *(("distill", arm, "sft", "batch", 64, "2501.12948v2 B.4.3") for arm in STUDENTS),
    ("distill", "base-recipe", "sft", "args.lr_scheduler_type", "cosine_with_min_lr", "2501.12948v2 B.4.3"),
    ("distill", "base-recipe", "sft", "args.lr_scheduler_kwargs.min_lr_rate", 0.1, "2501.12948v2 B.4.3"),
    ("distill", "base-recipe", "sft", "args.max_length", 32768, "2501.12948v2 B.4.3"),
    ("distill", "base-recipe", "sft", "args.num_train_epochs", 2, "2501.12948v2 B.4.3: 2 to 3"),
    ("distill", "zero-32b", "rl", "model.hub", "Qwen/Qwen2.5-32B", "2501.12948v1 §4.1"),
    ("distill", "zero-32b", "rl", "rewards", {"accuracy": 1.0, "format": 1.0}, "Nature, Methods"),
    ("distill", "zero-32b", "rl", RATE, 2e-6, "2501.12948v2 B.4.1"),
    ("distill", "zero-32b", "rl", "args.max_steps", 10000, "2501.12948v1 §4.1: over 10K"),
    ("distill", "zero-32b", "rl", "batch", 512, "Nature, Methods: 32 questions x 16"),
    ("distill", "zero-32b", "rl", "rollout", 8192, "Nature, Methods"),
]  # fmt: skip

PUBLISHED = [
    # recipe, what, value, source
    ("distill", "AIME 2024 pass@1, DeepSeek-R1", 79.8, "2501.12948v1 Table 4"),
    ("distill", "AIME 2024 pass@1, DeepSeek-R1-Zero-Qwen-32B", 47.0, "2501.12948v1 Table 6"),
    ("distill", "AIME 2024 cons@64, DeepSeek-R1-Zero-Qwen-32B", 60.0, "2501.12948v1 Table 6"),
    ("distill", "MATH-500 pass@1, DeepSeek-R1-Zero-Qwen-32B", 91.6, "2501.12948v1 Table 6"),
    *(
        ("distill", f"{what}, DeepSeek-R1-Distill-Qwen-{size}", value, "2501.12948v1 Table 5")
        for size, *values in (
            ("1.5B", 28.9, 52.7, 83.9),
            ("7B", 55.5, 83.3, 92.8),
            ("14B", 69.7, 80.0, 93.9),
            ("32B", 72.6, 83.3, 94.3),
        )
        for what, value in zip(
            ("AIME 2024 pass@1", "AIME 2024 cons@64", "MATH-500 pass@1"), values, strict=True
        )
    ),
    ("distill", "GPQA Diamond pass@1, DeepSeek-R1-Distill-Qwen-32B", 62.1, "2501.12948v1 Table 5"),
    ("distill", "LiveCodeBench pass@1, DeepSeek-R1-Distill-Qwen-32B", 57.2, "2501.12948v1 Table 5"),
    ("distill", "AIME 2024 pass@1, DeepSeek-R1-Distill-Llama-70B", 70.0, "2501.12948v1 Table 5"),
]
