"""The recipe that a preflight tries: a base model of two layers, and GRPO on it."""

from stage_runs import GRPO, PRETRAIN, TASK, TEMPLATE

WRITTEN_OUT = {
    "use_bias_correction_kl": False,
    "scale_rewards": "group",
    "epsilon": 0.2,
    "temperature": 1.0,
    "top_p": 1.0,
    "mask_truncated_completions": False,
    "importance_sampling_level": "token",
    "vllm_importance_sampling_correction": False,
}
TASK_OF_EVAL = {
    "task": TASK,
    "template": TEMPLATE,
    "items": 32,
    "samples": 2,
    "temperature": 1.0,
    "top_p": 1.0,
    "max_gen_toks": 12,
    "k": [1],
}
RECIPE = {
    "schema": 2,
    "title": "A toy",
    "url": "https://example.org",
    "seeds": 2,
    "stages": {
        "pretrain": {"run": "pretrain", "seed": 0, **PRETRAIN},
        "grpo": {
            "run": "grpo",
            "needs": {"policy": "pretrain"},
            **GRPO,
            "args": {**WRITTEN_OUT, **GRPO["args"]},
        },
    },
    "scales": {"cpu": {"about": "small"}},
    "arms": {"base-recipe": {"about": "the one"}},
    "evals": {"checkpoints": {"after": "grpo"}, "tasks": {"heldout": TASK_OF_EVAL}},
}
