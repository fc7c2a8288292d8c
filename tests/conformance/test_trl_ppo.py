"""Our PPO against TRL 1.12's, the last release that had one, on one rollout: the gradients of two epochs.

Skipped where TRL_PPO does not name that wheel (`pip download trl==1.12.0 --no-deps`). Two known differences
are taken out: TRL puts the score one position behind the end of a completion that is shorter than the
longest, so that all have one length here; and it whitens with the variance divided by n - 1.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import observe
import pytest
import torch

from encore.objectives import gae

WHEEL = os.environ.get("TRL_PPO", "")
COUNT, LENGTH = 12, 7
SETTINGS = {
    "learning_rate": 0.5,
    "kl_coef": 0.2,
    "gamma": 0.95,
    "lam": 0.9,
    "vf_coef": 0.3,
    "epsilon": 0.2,
    "cliprange_value": 0.2,
    "missing_eos_penalty": 1.5,
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WHEEL, reason="TRL_PPO does not name the wheel of TRL 1.12"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models and a rollout: every other completion ends with its last token, the others are cut there."""
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

    folder = tmp_path_factory.mktemp("trl")
    source = observe.model(folder)
    tokenizer = AutoTokenizer.from_pretrained(source)
    generator = torch.Generator().manual_seed(0)
    policy = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float64)
    reference = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float64)
    scorers = [
        AutoModelForSequenceClassification.from_pretrained(source, num_labels=1, dtype=torch.float64)
        for _ in range(2)
    ]
    with torch.no_grad():
        for model, size in [(reference, 0.1), *((scorer, 0.2) for scorer in scorers)]:
            for weight in model.parameters():
                weight += size * torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
    for name, model in zip(
        ("policy", "reference", "value", "reward"), (policy, reference, *scorers), strict=True
    ):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    first = len(tokenizer) - 20  # no special tokens among these
    prompts = torch.randint(first, len(tokenizer), (COUNT, 5), generator=generator)
    completions = torch.randint(first, len(tokenizer), (COUNT, LENGTH), generator=generator)
    completions[::2, -1] = tokenizer.eos_token_id
    rollout = {"prompts": prompts.tolist(), "completions": completions.tolist(), "settings": SETTINGS}
    (folder / "rollout.json").write_text(json.dumps(rollout))
    return folder


def theirs(folder: Path) -> list[dict[str, torch.Tensor]]:
    script = Path(__file__).with_name("trl_ppo.py")
    done = subprocess.run(
        [sys.executable, str(script), WHEEL, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return torch.load(folder / "gradients.pt")


def ours(folder: Path) -> tuple[list[dict[str, torch.Tensor]], Any]:
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
    from trl import GRPOConfig

    from encore.learning.rollouts import Options
    from encore.learning.trainer import Method, RolloutTrainer
    from encore.models.critic import Critic
    from encore.recipe.grpo_args import PpoArgs

    tokenizer = AutoTokenizer.from_pretrained(folder / "policy", padding_side="left")
    given = json.loads((folder / "rollout.json").read_text())
    reply = {tuple(p): c for p, c in zip(given["prompts"], given["completions"], strict=True)}
    policy, reference = (
        AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float64)
        for name in ("policy", "reference")
    )
    value, reward = (
        AutoModelForSequenceClassification.from_pretrained(folder / name, dtype=torch.float64)
        for name in ("value", "reward")
    )

    def score(prompts: list[str], completion_ids: list[list[int]], **columns: Any) -> list[float]:
        ids = [[*tokenizer(p)["input_ids"], *c] for p, c in zip(prompts, completion_ids, strict=True)]
        with torch.no_grad():
            return reward.score(reward.model(torch.tensor(ids)).last_hidden_state)[:, -1, 0].tolist()

    ppo = PpoArgs(**SETTINGS)
    args = GRPOConfig(
        output_dir=str(folder / "ours"),
        per_device_train_batch_size=COUNT,
        num_iterations=2,
        max_steps=2,
        max_completion_length=LENGTH,
        optim="sgd",
        lr_scheduler_type="constant",
        max_grad_norm=0.0,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        learning_rate=ppo.learning_rate,
        epsilon=ppo.epsilon,
        num_generations=COUNT,
        disable_dropout=True,
    )
    args.num_generations = 1
    trainer: Any = RolloutTrainer(
        Method(
            Options(reshuffle=True),
            critic=Critic(value.model, value.score),
            ppo=ppo,
            reference=reference,
        ),
        args,
        model=policy,
        reward_funcs=[score],
        train_dataset=Dataset.from_dict({"prompt": [tokenizer.decode(p) for p in given["prompts"]]}),
        processing_class=tokenizer,
    )
    learning = trainer.parts.kept["critic"]
    make_step = learning.step
    trainer._generate_single_turn = lambda ids, *a, **k: ([list(reply[tuple(p)]) for p in ids], None)
    steps: list[dict[str, torch.Tensor]] = []

    def step() -> None:
        named = {f"policy.{name}": weight for name, weight in trainer.model.named_parameters()}
        names = {"backbone": "value_model.model", "head": "value_model.score"}
        for name, weight in learning.critic.named_parameters():
            part, rest = name.split(".", 1)
            named[f"{names[part]}.{rest}"] = weight
        steps.append({name: weight.grad.clone() for name, weight in named.items()})
        make_step()

    learning.step = step
    trainer.train()
    return steps, trainer


def test_gradients_are_those_of_trl(prepared: Path, monkeypatch: pytest.MonkeyPatch):
    plain, tokens = gae.whiten, COUNT * LENGTH
    monkeypatch.setattr(gae, "whiten", lambda *a, **k: plain(*a, **k) * math.sqrt((tokens - 1) / tokens))
    with observe.quick():
        found, trainer = ours(prepared)
    expected = theirs(prepared)
    assert len(found) == len(expected) == 2
    for mine, other in zip(found, expected, strict=True):
        assert mine.keys() == other.keys()
        for part in ("policy.", "value_model."):
            a, b = (
                torch.cat([grads[name].flatten().double() for name in sorted(grads) if name.startswith(part)])
                for grads in (mine, other)
            )
            assert ((a - b).norm() / b.norm()).item() < 1e-5, part
    logged = trainer.state.log_history
    assert (
        max(row.get("ratio/deviation", 0.0) for row in logged) > 0.05
    )  # the second epoch is off the rollout
