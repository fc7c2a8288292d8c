"""What stage `ppo` optimises is PPO as its papers write it, in value and gradient of every optimizer step.

Policy and critic apart; through gradient accumulation, several minibatches a rollout and several epochs with
reshuffled minibatches over it; with truncated and ragged completions, and clips that cut.
"""

import functools
from pathlib import Path

import ppo_cases
import ppo_references as paper
import pytest
from compare import TOLERANCE, worst
from observe import LAYOUTS

FAST = {("ptx", "windows"), ("ziegler", "epochs")}
GRID = [
    pytest.param(case, layout, marks=() if (case, layout) in FAST else pytest.mark.slow)
    for case in ppo_cases.CASES
    for layout in LAYOUTS
]


@pytest.fixture(scope="module")
def run(folder: Path) -> ppo_cases.Run:
    return functools.cache(lambda case, layout: ppo_cases.run(folder, case, layout))


@pytest.mark.parametrize(("case", "layout"), GRID)
def test_value_and_gradient(case: str, layout: str, run: ppo_cases.Run, folder: Path):
    seen = run(case, layout)
    policy, critic, held = ppo_cases.outcomes(seen, folder)
    shape = LAYOUTS[layout]
    assert len(policy) == 2 * shape["slices"] * shape["epochs"] // shape["accumulate"]
    assert worst(policy) < TOLERANCE, [(one.value_error, one.gradient_error) for one in policy]
    assert worst(critic) < TOLERANCE, [(one.value_error, one.gradient_error) for one in critic]
    args = seen.watch.trainer.parts.kept["estimator"].args
    if args.kl_target is None:
        assert set(seen.kl_coefs) == {args.kl_coef}
    else:
        after = paper.next_kl_coef(args.kl_coef, held[0].kl, args.kl_target, args.kl_gain)
        assert seen.kl_coefs == [args.kl_coef, pytest.approx(after, rel=TOLERANCE)]
        assert after != args.kl_coef


def test_policy_and_reference_have_the_temperature_of_the_rollouts(folder: Path, monkeypatch):
    monkeypatch.setitem(ppo_cases.CASES, "warm", ({"temperature": 0.7}, {}))
    policy, critic, _ = ppo_cases.outcomes(ppo_cases.run(folder, "warm", "windows"), folder)
    assert worst(policy) < TOLERANCE
    assert worst(critic) < TOLERANCE


def test_the_critics_gradient_is_clipped_and_its_norms_do_not_decay(folder: Path, monkeypatch):
    limit = 1e-3
    monkeypatch.setitem(ppo_cases.CASES, "guarded", ({"max_grad_norm": limit, "weight_decay": 0.1}, {}))
    seen = ppo_cases.run(folder, "guarded", "windows")
    norms = [float(gradient.norm()) for _, gradient in seen.critic_updates]
    assert norms == pytest.approx([limit] * len(norms), rel=1e-3)
    learning = seen.watch.trainer.parts.kept["critic"]
    names = {id(weight): name for name, weight in learning.critic.named_parameters()}
    decays = {
        names[id(weight)]: group["weight_decay"]
        for group in learning.optimizer.param_groups
        for weight in group["params"]
        if id(weight) in names
    }
    assert set(decays) == set(names.values())
    assert {name for name, decay in decays.items() if decay == 0} == {n for n in decays if "norm" in n}


def test_minibatches_are_reshuffled(run: ppo_cases.Run):
    """The second epoch over a rollout has its rows in other minibatches; no row is lost or twice."""
    updates = [u for u in run("ziegler", "epochs").watch.updates if u.rollout == 0]
    rows = [[r for part in u.slices for r in ppo_cases.rows_of(part, 0)] for u in updates]
    half = len(rows) // 2
    first, second = ([row for part in epoch for row in part] for epoch in (rows[:half], rows[half:]))
    assert sorted(first) == sorted(second)
    assert [sorted(part) for part in rows[:half]] != [sorted(part) for part in rows[half:]]


def test_the_clips_cut(run: ppo_cases.Run):
    """Else the comparison would say nothing about them."""
    history = run("ziegler", "epochs").watch.trainer.state.log_history
    for name in ("clip_fraction", "value_clip_fraction"):
        assert max(row.get(name, 0.0) for row in history) > 0.05, name
