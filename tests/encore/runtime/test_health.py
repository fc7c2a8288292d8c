"""Each health check finds what it is for, and nothing else."""

import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_runs import TASK

from encore import worlds
from encore.errors import UserError
from encore.learning.callbacks import WatchHealth
from encore.runtime import curves, files, health
from encore.runtime.progress import Progress


@pytest.mark.parametrize(
    ("longest", "cap", "limit", "ok"), [(10, 20, 30, True), (11, 20, 30, False), (9, 9, None, True)]
)
def test_context(longest, cap, limit, ok):
    assert health.context(longest, cap, limit)["ok"] is ok


def test_grammar_of_context():
    assert health.context(79, 0, 64)["message"] == "the longest document needs 79 positions, the model has 64"
    assert "and a completion of 20 need 30 positions" in health.context(10, 20, 64)["message"]


@pytest.mark.parametrize(("available", "ok"), [(31, False), (32, True)])
def test_a_step_needs_a_whole_batch(available, ok):
    for what in ("demonstrations", "prompts", "pairs"):
        check = health.enough(available, 32, what)
        assert (check["check"], check["ok"], check["severity"]) == ("enough_data", ok, "error")
        assert check["message"] == f"one step takes 32 {what}, there are {available}"


def test_unknown_tokens():
    tokenizer = worlds.tokenizer([worlds.make(TASK)])
    assert health.known_tokens(tokenizer, ["<user>1+2=<assistant>"], "prompt")["ok"]
    assert not health.known_tokens(tokenizer, ["<user>1+2=<assistant>", "What is 1+2?"], "prompt")["ok"]
    assert health.known_tokens(tokenizer, ["1+<unk>2="], "response")["ok"]  # a policy can write it
    assert not health.known_tokens(tokenizer, ["1+<unk>2=?!"], "response")["ok"]


@pytest.mark.parametrize(("key", "base"), [("template", "a"), ("chat", True), ("chat", {"system": "s"})])
def test_template_of_the_base(key, base, tmp_path):
    files.write_json(tmp_path / "metrics.json", {"config": {key: base}, "model": "", "digest": ""})
    trained = tmp_path / "metrics.json"
    assert health.same_template(base, trained)["ok"]
    assert health.same_template(base, None)["ok"]
    other = health.same_template("another", trained)
    assert not other["ok"]
    assert health.stop_at_errors([other]) == [other]  # a warning stops nothing


@pytest.mark.parametrize(
    ("config", "own", "found"),
    [
        ({}, "a", None),
        ({"template": "a"}, "b", "a"),
        ({"template": "a", "corpus": {"also": [{"template": "b"}]}}, "b", "b"),
        ({"domains": {"x": {"template": "a"}, "y": {"template": "b"}}}, "b", "b"),
        ({"domains": {"x": {"template": "a"}, "y": {"template": "b"}}}, "c", "a"),
    ],
)
def test_a_base_may_have_learnt_several_templates(config, own, found, tmp_path):
    files.write_json(tmp_path / "metrics.json", {"config": config, "model": "", "digest": ""})
    assert health.template_of(tmp_path / "metrics.json", own) == found
    assert health.template_of(None, own) is None


@pytest.mark.parametrize(
    ("name", "metric", "good", "bad"),
    [
        ("truncation", "completions/clipped_ratio", 0.09, 0.11),
        ("zero_variance", "frac_reward_zero_std", 0.49, 0.51),
        ("underfull", "dynamic/underfull", 0.0, 0.01),
        ("entropy", "entropy", 0.11, 0.09),
        ("accuracy", "accuracy", 0.25, 0.24),
    ],
)
def test_warnings_of_a_training(name, metric, good, bad):
    for value, ok in ((good, True), (bad, False)):
        curve = [(1, "accuracy", 0.25), (1, "entropy", 1.0), (10, "entropy", 0.5)]
        scalars = {"last_fifth/entropy": 0.5, f"last_fifth/{metric}": value}
        (check,) = [one for one in health.training(curve, scalars, "full") if one["check"] == name]
        assert check["ok"] is ok
        assert check["severity"] == "warning"


def test_groups_left_out_of_the_rollout_may_have_zero_variance():
    scalars = {"last_fifth/frac_reward_zero_std": 0.9, "last_fifth/dynamic/underfull": 0.0}
    assert [one["check"] for one in health.training([], scalars, "full")] == ["underfull"]


def test_nothing_measured_nothing_said():
    assert health.training([], {}, "full") == []
    assert health.training([(1, "entropy", 1.0), (1, "accuracy", 1.0)], {}, "full") == []


def two_domains(general: float, flat: float) -> tuple[list, dict[str, float]]:
    """A curve in which reasoning goes from 0 to 1, and general from 0.5 to `general` with `flat` groups."""
    rows = []
    for step in range(1, 11):
        late = step > 8
        values = {
            "reward/reasoning": float(late),
            "rewards/accuracy/reasoning/mean": float(late),
            "rewards/format/reasoning/mean": 1.0,
            "reward/general": general if late else 0.5,
            "rewards/gold/general/mean": general if late else 0.5,
            "frac_reward_zero_std/reasoning": 0.1,
            "frac_reward_zero_std/general": flat,
            "completions/clipped_ratio/reasoning": 0.0,
            "completions/clipped_ratio/general": 0.2,
        }
        rows += [(step, name, value) for name, value in values.items()]
    return rows, curves.scalars(rows)


@pytest.mark.parametrize(
    ("general", "flat", "failed"),
    [
        (0.6, 0.4, set()),
        (0.6, 1.0, {"zero_variance/general"}),
        (0.5, 0.4, {"reward/general"}),  # it learns nothing
        (0.4, 0.4, {"reward/general", "rewards/gold/general"}),
    ],
)
def test_each_domain_is_watched_for_itself(general, flat, failed):
    found = health.training(*two_domains(general, flat), "full")
    assert {one["check"] for one in found if not one["ok"]} == failed | {"truncation/general"}
    assert {one["check"] for one in found if one["check"].endswith("/reasoning")} == {
        "truncation/reasoning",
        "zero_variance/reasoning",
        "reward/reasoning",
        "rewards/accuracy/reasoning",
        "rewards/format/reasoning",
    }
    said = {one["check"]: one["message"] for one in found}
    assert said["zero_variance/general"] == (
        f"{flat:.1%} of domain general's groups have zero variance (limit 50%) in the last fifth of the steps"
    )
    assert said["rewards/accuracy/reasoning"] == (
        "accuracy of domain reasoning went from 0.000 in the first fifth of the steps to 1.000 "
        "in the last fifth of the steps"
    )


def lines_of(history: list[dict], steps: int, precision: health.Precision = "full") -> list[str]:
    """What is printed while `history` is logged."""
    out = io.StringIO()
    watch = WatchHealth(Progress("r/cpu/a/seed0/grpo", out), precision)
    for i, entry in enumerate(history):
        state = SimpleNamespace(log_history=history[: i + 1], global_step=entry["step"], max_steps=steps)
        watch.on_log(None, state, None)
    return out.getvalue().splitlines()


def test_a_warning_is_said_once_and_as_soon_as_it_is_due():
    flat = [{"step": n, "frac_reward_zero_std": 0.3 if n < 100 else 0.78} for n in range(1, 201)]
    warning = "warning: 54.0% of groups have zero variance (limit 50%) at step 110"
    assert lines_of(flat, 200) == [f"[r/cpu/a/seed0 grpo] {warning}"]
    fell = [{"step": n, "accuracy": 0.25 if n < 50 else 0.02, "loss": 0.0} for n in range(1, 201)]
    (line,) = lines_of(fell, 200)
    assert "warning: accuracy went from 0.250 in the first fifth of the steps to" in line


def test_a_sound_run_and_a_bad_start_are_no_warning():
    good = [{"step": n, "accuracy": n / 100, "frac_reward_zero_std": 0.1} for n in range(1, 101)]
    good[0] |= {"frac_reward_zero_std": 1.0, "completions/clipped_ratio": 0.9}
    assert lines_of(good, 100) == []
    assert lines_of([{"step": n, "loss": 1.0} for n in range(1, 31)], 30) == []


def apart(gap: float) -> list[dict]:
    return [{"step": n, "sampler_gap": gap if n == 7 else 1e-7} for n in range(1, 101)]


def test_a_sampler_that_is_another_policy():
    """Told at its own step, before the first fifth of the run is over."""
    assert lines_of(apart(0.004), 100) == []
    (line,) = lines_of(apart(0.02), 100)
    assert "] warning: the sampler's log-probabilities differ from the trainer's by 0.02 nats a token" in line
    assert "(limit 0.005)" in line
    with pytest.raises(UserError) as error:
        lines_of(apart(0.06), 100)
    assert str(error.value).startswith("health check sampler_gap: the sampler's log-probabilities differ")
    assert "by 0.06 nats a token on average (limit 0.05)" in str(error.value)
    assert "\n" not in str(error.value)
    curve = curves.rows(apart(0.02))
    (found,) = [one for one in health.training(curve, {}, "full") if not one["ok"]]
    assert (found["check"], found["value"], found["severity"]) == ("sampler_gap", 0.02, "warning")


def test_in_float32_no_gap_at_the_start_leaves_the_limit_as_it_is():
    (line,) = lines_of(gaps(0.0, 0.0, 0.02), 100)
    assert "by 0.02 nats a token on average (limit 0.005)" in line


def gaps(*values: float) -> list[dict]:
    return [{"step": n, "sampler_gap": value} for n, value in enumerate(values, 1)]


def test_the_gap_of_a_sound_run_in_bf16_stops_nothing():
    """Single rows of .06 to .2 between rows of .02 to .04 are what public bf16 runs have."""
    history = gaps(*[0.02, 0.04, 0.03, 0.2, 0.035, 0.06] * 20)
    assert lines_of(history, 200, "half") == []
    (found,) = health.sampled_as_trained(curves.rows(history), "half")
    assert found["ok"]
    near_zero = gaps(*[1e-4] * 5, *[0.05] * 50)
    assert lines_of(near_zero, 200, "half") == []  # five hundred times the first, and still sound


def test_a_sampler_that_is_rounded_on_purpose_stops_nothing():
    """In float8 SmolLM2-135M samples 0.086 nats from itself in float32, where 0.05 ends a run."""
    assert lines_of(gaps(0.086, *[0.1] * 40), 200, "rounded") == []
    (line,) = lines_of(gaps(*[0.5] * 40), 200, "rounded")  # a warning, and no error
    assert "by 0.5 nats a token" in line


@pytest.mark.parametrize("later", [0.17, 0.4])
def test_a_gap_in_bf16_that_grows_fivefold_stops(later):
    history = gaps(*[0.03] * 10, *[later] * 5)
    assert lines_of(history[:-3], 200, "half") == []  # two rows are not yet the median of five
    with pytest.raises(UserError) as error:
        lines_of(history, 200, "half")
    said = f"by {later:.2g} nats a token on average (limit 0.15; the run began with 0.03)"
    assert said in str(error.value)


def test_a_gap_in_bf16_that_is_large_from_the_start_stops_at_a_fixed_limit():
    (warning,) = lines_of(gaps(*[0.1] * 20), 200, "half")
    assert "by 0.1 nats a token on average (limit 0.06)" in warning
    (warning,) = lines_of(gaps(*[0.4] * 4), 200, "half")  # too few rows to stop
    assert "by 0.4 nats a token on average (limit 0.06)" in warning
    with pytest.raises(UserError, match=r"by 0.4 nats a token on average \(limit 0.3\)"):
        lines_of(gaps(*[0.4] * 5), 200, "half")


@given(
    before=st.lists(st.floats(0, 0.06), min_size=5, max_size=20),
    spikes=st.lists(st.floats(0, 9), max_size=2),
)
def test_two_rows_of_any_size_stop_no_run(before, spikes):
    assert lines_of(gaps(*before, *spikes, *before), 200, "half") == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_what_stops_a_run_as_it_goes_is_an_error_at_its_end(values):
    """The newest window at some moment is the worst window of the whole curve."""
    (at_end,) = health.sampled_as_trained(curves.rows(gaps(*values)), "half")
    try:
        lines_of(gaps(*values), 200, "half")
        stopped = False
    except UserError:
        stopped = True
    assert stopped is (at_end["severity"] == "error")
