"""REINFORCE: the lecture's mathematics against loops in float64, its laws, and the loop on a bandit."""

import math
from types import SimpleNamespace
from typing import Any

import jobs
import pytest
import stage_runs
import torch
from hypothesis import given
from hypothesis import strategies as st

from encore import worlds
from encore.errors import UserError
from encore.learning import reinforce
from encore.models import language_model
from encore.objectives import kl, losses
from encore.objectives.advantages import DELTAS
from encore.objectives.clip import cut_by_clip
from encore.objectives.ratios import token_ratios
from encore.recipe.grpo_args import PolicyGradientArgs
from encore.recipe.shape import Shape

EPSILON = 0.2
ARGS: dict[str, Any] = stage_runs.REINFORCE["args"] | {"max_completion_length": 8}
logs = st.floats(-8.0, -0.01)
rewards = st.lists(
    st.lists(st.sampled_from([0.0, 0.2, 0.4, 0.8, 1.0]), min_size=4, max_size=4), min_size=1, max_size=3
)


def numbers(seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Log-probabilities, old ones, (2, 3, 5), deltas of both signs, (2, 3), and a ragged mask; float64."""
    g = torch.Generator().manual_seed(seed)
    old = -torch.rand(2, 3, 5, generator=g, dtype=torch.float64) * 3 - 0.05
    new = old + 0.4 * torch.randn(2, 3, 5, generator=g, dtype=torch.float64)
    lengths = torch.tensor([[5, 3, 4], [1, 5, 2]])
    mask = (torch.arange(5) < lengths[..., None]).double()
    return new, old, torch.randn(2, 3, generator=g, dtype=torch.float64), mask


def by_hand(new, old, delta, mask, mode: str, log_ratio: bool) -> float:
    """The loss, a token at a time, in Python's floats."""
    terms = []
    for i, j, t in [(i, j, t) for i in range(2) for j in range(3) for t in range(5)]:
        if not mask[i, j, t]:
            continue
        p, q, d = (float(x) for x in (new[i, j, t], old[i, j, t], delta[i, j]))
        ratio = p / q if log_ratio else math.exp(p) / math.exp(q)
        unclipped = d * ratio
        clipped = d * min(max(ratio, 1 - EPSILON), 1 + EPSILON)
        terms.append({"naive": d * p, "unclipped": unclipped, "clipped": min(unclipped, clipped)}[mode])
    return -sum(terms) / len(terms)


@pytest.mark.parametrize("mode", losses.LOSSES)
@pytest.mark.parametrize("log_ratio", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_loss_is_the_mean_over_response_tokens(mode, log_ratio, seed):
    new, old, delta, mask = numbers(seed)
    value = losses.policy_gradient(new, old, delta, mode, EPSILON, log_ratio, mask)
    assert float(value) == pytest.approx(by_hand(new, old, delta, mask, mode, log_ratio), rel=1e-12)


def gradient(new, old, delta, mode, log_ratio=False, mask=None) -> torch.Tensor:
    leaf = new.clone().requires_grad_()
    losses.policy_gradient(leaf, old, delta, mode, EPSILON, log_ratio, mask).backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize("mode", ["unclipped", "clipped"])
def test_before_the_first_update_every_ratio_has_the_naive_gradient(mode):
    _, old, delta, mask = numbers()
    naive = gradient(old, old, delta, "naive", mask=mask)
    torch.testing.assert_close(gradient(old, old, delta, mode, mask=mask), naive, rtol=1e-12, atol=0)


@pytest.mark.parametrize("mode", ["unclipped", "clipped"])
def test_the_ratio_of_logs_turns_every_gradient_round(mode):
    """What minimising makes more likely under the true ratio gets less likely under the lecture's."""
    _, old, delta, _ = numbers()
    right, wrong = (gradient(old, old, delta, mode, log_ratio) for log_ratio in (False, True))
    assert (right.sign() == -delta[..., None].sign()).all()
    assert (wrong.sign() == -right.sign()).all()


def test_the_ratio_of_logs_of_a_certain_token_is_finite():
    certain = torch.zeros(1, 1, requires_grad=True)
    losses.policy_gradient(certain, torch.zeros(1, 1), torch.ones(1), "unclipped", log_ratio=True).backward()
    assert certain.grad is not None
    assert torch.isfinite(certain.grad).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_clip_cuts_where_it_is_said_to(seed):
    new, old, delta, _ = numbers(seed)
    cut = cut_by_clip(token_ratios(new, old), delta[..., None], EPSILON, EPSILON)
    assert 0 < cut.sum() < cut.numel()
    assert ((gradient(new, old, delta, "clipped") == 0) == cut).all()


@given(rewards)
def test_deltas(values):
    r = torch.tensor(values, dtype=torch.float64)
    assert torch.equal(DELTAS["raw"](r), r)
    centered, normalized, best = (DELTAS[mode](r) for mode in ("centered", "normalized", "max"))
    torch.testing.assert_close(centered.sum(dim=1), torch.zeros(len(r), dtype=r.dtype), atol=1e-12, rtol=0)
    for row, c, n, m in zip(values, centered.tolist(), normalized.tolist(), best.tolist(), strict=True):
        mu = sum(row) / len(row)
        std = math.sqrt(sum((x - mu) ** 2 for x in row) / (len(row) - 1))
        assert c == pytest.approx([x - mu for x in row], abs=1e-12)
        assert n == pytest.approx([(x - mu) / (std + 1e-5) for x in row], abs=1e-9)
        assert m == [x if x == max(row) else 0.0 for x in row]


@given(logs, logs)
def test_kl_estimators(log_p, log_q):
    p, q = (torch.tensor(x, dtype=torch.float64) for x in (log_p, log_q))
    k1, k2, k3 = (float(kl.kl(p, q, name)) for name in kl.ESTIMATORS)
    r = math.exp(log_q) / math.exp(log_p)
    assert k1 == pytest.approx(-math.log(r), abs=1e-9)
    assert k2 == pytest.approx(math.log(r) ** 2 / 2, abs=1e-9)
    assert k3 == pytest.approx(r - 1 - math.log(r), rel=1e-6, abs=1e-12)
    assert k2 >= 0
    assert k3 >= 0


@given(st.lists(st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)), min_size=2, max_size=5))
def test_k1_and_k3_are_the_kl_on_average(weights):
    """Every token of a small vocabulary, weighted by its probability."""
    p, q = torch.tensor(weights, dtype=torch.float64).T
    log_p, log_q = (p / p.sum()).log(), (q / q.sum()).log()
    exact = sum(math.exp(a) * (a - b) for a, b in zip(log_p.tolist(), log_q.tolist(), strict=True))
    assert float(kl.exact_kl(log_p, log_q)) == pytest.approx(exact, abs=1e-12)
    for name in ("k1", "k3"):
        average = float((log_p.exp() * kl.kl(log_p, log_q, name)).sum())
        assert average == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"delta": "centred"}, 'args.delta: unknown value the text "centred"; did you mean "centered"'),
        ({"loss": "clip"}, 'args.loss: unknown value the text "clip"; did you mean "clipped"'),
        (
            {"learning_rat": 1.0},
            'args.learning_rat: unknown key; did you mean "learning_rate"',
        ),
        ({"epochs": 0}, "args.epochs: expected at least 1, got 0"),
        ({"temperature": 0.0}, "args.temperature: expected more than 0, got 0.0"),
        ({"kl_coefficient": -1.0}, "args.kl_coefficient: expected at least 0, got -1.0"),
        ({"num_generations": 1}, "args.num_generations: delta centered compares at least 2 responses"),
        ({"log_ratio": True}, "args.log_ratio: loss naive has no ratio"),
    ],
)
def test_a_mistake_in_args_is_one_line(args, says):
    with pytest.raises(UserError) as error:
        jobs.stage("policy_gradient", {"model": {"path": "p"}, "args": ARGS | args}).check_rules()
    assert str(error.value).startswith(says)


def test_a_missing_argument_is_named():
    with pytest.raises(UserError, match=r"^args\.delta: missing$"):
        jobs.stage("policy_gradient", {"args": {k: v for k, v in ARGS.items() if k != "delta"}})


@pytest.fixture(scope="module")
def tokenizer():
    return worlds.tokenizer([worlds.make({"world": "sort"})])


def policy(tokenizer):
    return language_model.build(Shape(hidden_size=32, layers=1, head_dim=32), tokenizer, 0).eval()


def test_log_probabilities_do_not_depend_on_the_padding(tokenizer):
    model, rows = policy(tokenizer), [[5, 6, 7, 8, 9], [7, 8]]
    ids = torch.tensor([rows[0], [*rows[1], 0, 0, 0]])
    with torch.no_grad():
        found = reinforce.of_tokens(reinforce.distribution(model, ids, 0.7), ids)
        for row, values in zip(rows, found, strict=True):
            logits = model(input_ids=torch.tensor([row])).logits[0] / 0.7
            expected = [logits[t - 1].log_softmax(-1)[row[t]] for t in range(1, len(row))]
            torch.testing.assert_close(values[: len(row) - 1], torch.stack(expected))


def test_a_response_keeps_the_token_that_ends_it(tokenizer):
    end, config = (
        tokenizer.eos_token_id,
        SimpleNamespace(temperature=1.0, max_completion_length=3, num_generations=2),
    )

    def generate(input_ids, **options):
        rows = input_ids.repeat_interleave(2, dim=0)
        drawn = torch.tensor([[5, end, 0], [5, 6, 7]] * len(input_ids))
        return torch.cat([rows, drawn], dim=1)

    model = SimpleNamespace(generate=generate, device="cpu", generation_config=None)
    assert reinforce.sample(model, tokenizer, ["3,1="], config) == [[5, end], [5, 6, 7]]


def bandit(tokenizer, **args) -> list[dict[str, Any]]:
    """The log of a random policy whose reward is the share of 7s in a response."""

    def share(completions, **columns):
        return [text.count("7") / max(len(text), 1) for text in completions]

    config = PolicyGradientArgs(
        **(ARGS | {"num_generations": 32, "inner_steps": 4, "max_completion_length": 6} | args)
    )
    problems = [
        {"prompt": f"<user>{i}<assistant>", "question": "", "answer": "", "difficulty": 0} for i in "123"
    ]
    seen: list[dict[str, Any]] = []

    def report(entry: dict[str, Any], rollout: reinforce.Rollout) -> None:
        assert [len(ids) for ids in rollout.responses] == rollout.mask.sum(dim=1).tolist()
        seen.append(entry)

    functions = {"accuracy": share}
    reinforce.train(policy(tokenizer), tokenizer, problems, functions, {"accuracy": 1.0}, config, 0, report)
    return seen


def test_the_loop_learns_and_the_defect_unlearns(tokenizer):
    good = bandit(tokenizer, loss="clipped", epsilon=0.2)
    assert good[-1]["reward"] > good[0]["reward"] + 0.2
    assert good[0]["kl/exact"] == good[0]["kl/k1"] == 0.0  # the reference was frozen just before
    assert good[-1]["kl/exact"] > 0.01
    assert good[-1]["kl/k3"] == pytest.approx(good[-1]["kl/exact"], rel=0.5)
    assert good[0]["ratio/deviation"] > 0.01
    assert 0 < good[-1]["clip_fraction"] < 1
    bad = bandit(tokenizer, loss="unclipped", log_ratio=True)
    assert bad[-1]["reward"] < bad[0]["reward"]


@pytest.mark.slow
def test_the_penalty_holds_the_policy_at_its_reference(tokenizer):
    free, held = (bandit(tokenizer, kl_coefficient=c)[-1]["kl/exact"] for c in (0.0, 10.0))
    assert held < free / 2
