"""Score forward_kl: against the sum over all completions of the reference."""

import math

import pytest
import torch
from stage_runs import finished

from encore import worlds
from encore.models import language_model
from encore.recipe.shape import Shape

SHAPE = Shape(hidden_size=32, layers=1, max_position_embeddings=128)
TASK = {"world": "preferences"}
WORDS = worlds.tokenizer([worlds.make(TASK)])
ASKED = {
    "task": TASK,
    "template": "<user>{question}<assistant>",
    "items": 4,
    "samples": 2048,
    "temperature": 1.0,
    "top_p": 1.0,
    "max_gen_toks": 2,
    "score": ["forward_kl"],
    "k": [1],
}


def policy(folder, seed, sharper):
    """Save a random policy, its logits times `sharper`; return the model and its metrics.json."""
    model = language_model.build(SHAPE, WORDS, seed)
    model.lm_head.weight.data *= sharper
    model.save_pretrained(folder / "final")
    WORDS.save_pretrained(folder / "final")
    return model, finished(folder)


def divergence(first, second, prompt):
    """Return KL(first || second) of completions of two tokens, or one that ends the sequence."""
    with torch.no_grad():
        opening = [model(torch.tensor([prompt])).logits[0, -1].log_softmax(-1) for model in (first, second)]
        longer = torch.tensor([[*prompt, word] for word in range(len(WORDS))])
        following = [model(longer).logits[:, -1].log_softmax(-1) for model in (first, second)]
    after = (following[0].exp() * (following[0] - following[1])).sum(dim=-1)  # (words,)
    after[WORDS.eos_token_id] = 0
    return (opening[0].exp() * (opening[0] - opening[1] + after)).sum()


@pytest.mark.parametrize("backend", ["hf", "lean"])
def test_it_is_that_of_all_completions_of_the_reference(command, backend, tmp_path):
    sharp, place = policy(tmp_path / "sharp", 0, 8.0)  # so that the other direction has another value
    reference, start = policy(tmp_path / "reference", 1, 1.0)
    status, _, rows = command(ASKED, place, reference=start, backend=backend)
    assert status == 0
    opposite = 0.0
    for row in rows:
        drawn = torch.tensor(row["forward_logratio"])
        error = drawn.std() / math.sqrt(len(drawn))
        prompt = WORDS(f"<user>{row['question']}<assistant>")["input_ids"]
        assert abs(drawn.mean() - divergence(reference, sharp, prompt)) < 4 * error
        opposite = max(opposite, abs(drawn.mean() - divergence(sharp, reference, prompt)) / error)
    assert opposite > 6


def test_it_is_zero_against_itself(command, tmp_path):
    _, place = policy(tmp_path / "policy", 0, 1.0)
    _, result, _ = command(ASKED, place, reference=place)
    assert result["tasks"]["heldout"]["metrics"]["forward_kl"]["value"] == 0
