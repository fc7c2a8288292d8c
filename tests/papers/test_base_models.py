"""Base models from nothing: their longest document fits the positions that they have."""

from typing import Any

import pytest
import typed
from papers import GRAPH, RECIPES

from encore import worlds
from encore.data import corpora
from encore.recipe.graph import Node


def config(scale: str, arm: str) -> dict[str, Any]:
    return GRAPH.config(Node("tiny_lm", scale, arm, 0, "pretrain", "stage"))


@pytest.mark.slow
@pytest.mark.parametrize("arm", RECIPES["tiny_lm"].arms("cpu"))
def test_every_document_fits(arm):
    """The stage would refuse it when it runs, hours into a recipe that starts from this model."""
    own = config("cpu", arm)
    tokenizer = worlds.tokenizer(corpora.worlds_of(*typed.corpus(own)[::2]))
    texts = [
        f"{prompt}{reply}{tokenizer.eos_token}" for prompt, reply in corpora.documents(*typed.corpus(own), 0)
    ]
    most_characters = sorted(texts, key=len)[-100:]  # a token is a character, few are more
    longest = max(map(len, tokenizer(most_characters)["input_ids"]))
    for scale in ("cpu", "gpu-offline"):
        assert longest <= config(scale, arm)["model"]["max_position_embeddings"], scale
