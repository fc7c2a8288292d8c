"""One rollout and two epochs of TRL 1.12's own PPO, run with that wheel in place of the installed TRL.

    python trl_ppo.py WHEEL FOLDER

FOLDER holds the models policy, reference, value and reward, and rollout.json with `settings`, `prompts` and
`completions`: token ids, all completions of one length. Writes gradients.pt there: of each optimizer step the
gradient of every parameter, `policy.…` and `value_model.…`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}


def main(wheel: str, folder: Path) -> None:
    sys.path.insert(0, wheel)
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
    from trl.experimental.ppo import PPOConfig, PPOTrainer, ppo_trainer

    given = json.loads((folder / "rollout.json").read_text())
    reply = {tuple(p): c for p, c in zip(given["prompts"], given["completions"], strict=True)}
    count, length = len(reply), len(given["completions"][0])

    def policy(name: str) -> Any:
        return AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float64)

    def scorer(name: str) -> Any:
        return AutoModelForSequenceClassification.from_pretrained(folder / name, dtype=torch.float64)

    def generation(model: Any, queries: torch.Tensor, *args: Any) -> tuple[torch.Tensor, torch.Tensor]:
        replies = torch.tensor([reply[tuple(query)] for query in queries.tolist()])
        ids = torch.cat([queries, replies], dim=1)
        return ids, model(input_ids=ids).logits[:, queries.shape[1] - 1 : -1]

    ppo_trainer.batch_generation = generation
    tokenizer = AutoTokenizer.from_pretrained(folder / "policy")
    settings = given["settings"]
    args = PPOConfig(
        output_dir=str(folder / "trl"),
        per_device_train_batch_size=count,
        gradient_accumulation_steps=1,
        num_mini_batches=1,
        num_ppo_epochs=2,
        total_episodes=count,
        local_rollout_forward_batch_size=count,
        response_length=length,
        stop_token_id=tokenizer.eos_token_id,
        temperature=1.0,
        num_sample_generations=0,
        optim="sgd",
        learning_rate=settings["learning_rate"],
        lr_scheduler_type="constant",
        kl_coef=settings["kl_coef"],
        kl_estimator="k1",
        gamma=settings["gamma"],
        lam=settings["lam"],
        vf_coef=settings["vf_coef"],
        cliprange=settings["epsilon"],
        cliprange_value=settings["cliprange_value"],
        missing_eos_penalty=settings["missing_eos_penalty"],
        whiten_rewards=False,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
    )
    trainer = PPOTrainer(
        args=args,
        processing_class=tokenizer,
        model=policy("policy"),
        ref_model=policy("reference"),
        reward_model=scorer("reward"),
        value_model=scorer("value"),
        train_dataset=Dataset.from_dict({"input_ids": given["prompts"]}),
    )
    steps: list[dict[str, torch.Tensor]] = []
    step = trainer.optimizer.step

    def watched(*args: Any, **kwargs: Any) -> Any:
        gradients = {n: w.grad for n, w in trainer.model.named_parameters() if w.grad is not None}
        steps.append({name: gradient.clone() for name, gradient in gradients.items()})
        return step(*args, **kwargs)

    trainer.optimizer.step = watched
    trainer.train()
    torch.save(steps, folder / "gradients.pt")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
