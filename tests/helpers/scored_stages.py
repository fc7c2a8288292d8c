"""Stages of a recipe that ends in a reward model, by which its evaluations score."""

SFT = {
    "run": "sft",
    "needs": {"policy": "tiny/pretrain", "data": "demonstrations"},
    "args": {"learning_rate": 1e-4, "lr_scheduler_type": "constant"},
}
SAMPLE = {
    "run": "rejection_sampling",
    "needs": {"policy": "tiny/pretrain"},
    "task": {"world": "chain"},
    "template": "<user>{question}<assistant>",
    "args": {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 8},
}
LABEL = {"run": "label", "needs": {"data": "replies"}, "by": "gold"}
REWARD = {
    "run": "reward_model",
    "needs": {"policy": "sft", "data": "labels"},
    "comparisons": "grouped",
    "args": {"learning_rate": 1e-4, "lr_scheduler_type": "constant"},
}
STAGES = {
    "demonstrations": SAMPLE,
    "replies": SAMPLE | {"run": "sample", "task": {"world": "preferences"}},
    "labels": LABEL,
    "sft": SFT,
    "rm": REWARD,
}
