"""What DeepSeek-R1 says of its four stages: settings at scale paper, published numbers."""

STEPS = {"zero": 10400, "scenarios": 1300, "preference": 400}  # Nature; of the first RL stage not reported
TEMPERATURES = {"zero": 1.0, "reasoning": 1.0, "scenarios": 0.7, "preference": 0.7}  # Nature
SETTINGS = [  # of every stage of RL
    ("args.learning_rate", 3e-6, "Nature, Methods"),
    ("args.beta", 0.001, "Nature, Methods"),
    ("args.epsilon", 10.0, "Nature, Methods: RL stage 1"),
    ("args.num_generations", 16, "Nature, Methods"),
    ("args.ref_model_sync_steps", 400, "Nature, Methods"),
    ("args.ref_model_mixup_alpha", 1.0, "Nature, Methods: replaced, not mixed"),
    ("batch", 512, "Nature, Methods: 32 questions x 16"),
    ("rollout", 8192, "Nature, Methods"),
]
FINE_TUNED = [
    ("args.learning_rate", 5e-5, "2501.12948v2 B.4.2"),
    ("args.lr_scheduler_type", "cosine_with_min_lr", "2501.12948v2 B.4.2"),
    ("args.lr_scheduler_kwargs.min_lr_rate", 0.1, "2501.12948v2 B.4.2: 5e-5 to 5e-6"),
    ("args.num_train_epochs", 2, "2501.12948v1 §2.3.3"),
    ("args.max_length", 32768, "2501.12948v2 B.4.2"),
    ("batch", 128, "2501.12948v2 B.4.2"),
]
STAGES = [
    # recipe, arm, stage, what, value, source
    *(("r1", "base-recipe", stage, *setting) for stage in TEMPERATURES for setting in SETTINGS),
    *(("r1", "base-recipe", stage, "args.temperature", t, "Nature") for stage, t in TEMPERATURES.items()),
    *(("r1", "base-recipe", stage, "args.max_steps", n, "Nature") for stage, n in STEPS.items()),
    *(("r1", "base-recipe", name, *setting) for name in ("cold_start", "sft") for setting in FINE_TUNED),
    ("r1", "base-recipe", "zero", "rewards", {"accuracy": 1.0, "format": 1.0}, "Nature: equal weight"),
    ("r1", "base-recipe", "zero", "caps", {"0": 32768, "8192": 65536}, "Nature: step 8.2k"),
    ("r1", "base-recipe", "reasoning", "args.max_completion_length", 32768, "Nature"),
    ("r1", "base-recipe", "reasoning", "rewards", {"accuracy": 1.0, "english": 1.0}, "v1 §2.3.2: summed"),
    ("r1", "base-recipe", "scenarios", "rewards", {"accuracy": 1.0, "english": 1.0}, "Nature"),
    ("r1", "base-recipe", "preference", "domains.general.rewards.reward_model", 1.0, "v1 §2.3.4"),
    ("r1", "base-recipe", "reward_model", "args.learning_rate", 6e-6, "Nature"),
    ("r1", "base-recipe", "reward_model", "args.num_train_epochs", 1, "Nature"),
    ("r1", "base-recipe", "reward_model", "args.max_length", 8192, "Nature"),
    ("r1", "base-recipe", "reward_model", "batch", 256, "Nature"),
    ("r1", "base-recipe", "cold_start", "model.hub", "deepseek-ai/DeepSeek-V3-Base", "v1 §2.3.1"),
    ("r1", "base-recipe", "sft", "model.hub", "deepseek-ai/DeepSeek-V3-Base", "v1 §2.3.3: the base again"),
]

LADDER = {  # Nature, table of the stages: Zero, Dev1, Dev2, Dev3, R1
    "AIME 2024 pass@1": (77.9, 59.0, 74.0, 78.1, 79.8),
    "LiveCodeBench": (50.0, 57.5, 63.5, 64.6, 65.9),
    "AlpacaEval 2.0": (24.7, 50.1, 55.8, 62.1, 87.6),
    "ArenaHard": (53.6, 77.0, 73.2, 75.6, 92.3),
}
PUBLISHED = [
    # recipe, what, value, source
    *(
        ("r1", f"{what}, {name}", value, "Nature, table of the stages")
        for what, row in LADDER.items()
        for name, value in zip(("R1-Zero", "R1 Dev1", "R1 Dev2", "R1 Dev3", "R1"), row, strict=True)
    ),
    ("r1", "AIME 2024 pass@1, DeepSeek-V3-Base", 15.6, "2501.12948v1 §2.2.4"),
    ("r1", "MATH-500 pass@1, R1", 97.3, "2501.12948v1 Table 4"),
    ("r1", "GPQA Diamond pass@1, R1", 71.5, "2501.12948v1 Table 4"),
]
