"""A small valid recipe to be spoiled, and the recipe it builds on."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from encore.errors import UserError
from encore.recipe.load import load_all
from encore.recipe.recipe import Recipe

GRPO = """
loss_type: grpo
beta: 0.001
use_bias_correction_kl: false
scale_rewards: group
num_generations: 8
num_iterations: 1
steps_per_generation: 4
gradient_accumulation_steps: 1
epsilon: 0.2
temperature: 1.0
top_p: 1.0
mask_truncated_completions: false
importance_sampling_level: token
lr_scheduler_type: constant
learning_rate: 3.0e-6
max_completion_length: 64
vllm_importance_sampling_correction: false
"""
PAPER = f"""
schema: 2
title: A paper
url: https://example.org
seeds: 3
stages:
  grpo:
    run: grpo
    needs: {{policy: tiny/pretrain}}
    task: {{world: chain}}
    template: "<user>{{question}}<assistant>"
    rewards: {{accuracy: 1.0}}
    args: {{{", ".join(GRPO.split(chr(10))[1:-1])}}}
scales:
  cpu: {{about: small}}
  paper:
    about: large
    stages:
      grpo:
        needs: {{policy: null}}
        model: {{hub: org/name, revision: {"a" * 40}}}
arms:
  base-recipe: {{about: the paper's}}
  hot: {{about: warmer, stages: {{grpo: {{args: {{temperature: 1.2}}}}}}}}
  only-cpu: {{about: small only, scales: [cpu], stages: {{grpo: {{rewards: {{format: 0.1}}}}}}}}
evals:
  checkpoints: {{before: grpo.policy, after: grpo}}
  tasks:
    heldout: {{task: {{world: chain}}, template: "{{question}}", items: 8, samples: 4, temperature: 1.0,
               top_p: 1.0, max_gen_toks: 64, k: [1, 4]}}
claims:
  lifts: {{says: it lifts, source: Fig. 1, paper: "2501.12948", test: {{metric: heldout/accuracy,
          of: base-recipe/after, against: base-recipe/before, direction: higher, margin: 0.25}}}}
"""
TINY = """
schema: 2
title: A base model
url: https://example.org
stages:
  pretrain:
    run: pretrain
    seed: 0
    task: {world: chain}
    template: "<user>{question}<assistant>"
    corpus: {documents: 10, mixture: {chain: 1.0}}
    model: {hidden_size: 64, layers: 2}
    args: {max_steps: 3, learning_rate: 1.0e-3}
scales:
  cpu: {about: small}
arms:
  base-recipe: {about: the one}
  other: {about: another, stages: {pretrain: {args: {max_steps: 4}}}}
evals: {}
"""


class Folder:
    """Recipes to be written as YAML, after a change of the parsed data."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.specs: dict[str, dict[str, Any]] = {
            "paper": yaml.load(PAPER, yaml.CSafeLoader),
            "tiny": yaml.load(TINY, yaml.CSafeLoader),
        }

    def set(self, recipe: str, keys: str, value: Any) -> None:
        *path, last = keys.split("/")
        at = self.specs[recipe]
        for key in path:
            at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
        at[last] = value

    def remove(self, recipe: str, keys: str) -> None:
        *path, last = keys.split("/")
        at = self.specs[recipe]
        for key in path:
            at = at[key]
        del at[last]

    def mistake(self, lines: int = 1) -> str:
        """The one line, or the first of several, by which the recipes are refused."""
        with pytest.raises(UserError) as error:
            self.load()
        assert len(error.value.lines) == lines
        return error.value.lines[0]

    def load(self) -> dict[str, Recipe]:
        for name, spec in self.specs.items():
            text = yaml.dump(copy.deepcopy(spec), Dumper=yaml.CSafeDumper, sort_keys=False)
            (self.path / f"{name}.yaml").write_text(text)
        return load_all(self.path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
