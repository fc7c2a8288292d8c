"""The table of a preflight, its totals, and what makes it fail."""

import pytest

from encore.forecast import findings, trial
from encore.forecast.findings import Cost, Finding
from encore.runtime import health

COSTS = [
    Cost("sft", 3, gpus=1, steps=12_000, step_s=1.5, hours=5.0, product_mib=100.0, state_mib=300.0),
    Cost("grpo", 3, gpus=8, steps=240, step_s=30.0, hours=2.0, hours_at_most=7.0, product_mib=100.0),
    Cost("eval after", 1, gpus=1, hours=1.0),
]


def test_totals_are_of_all_seeds():
    total = findings.hours(COSTS)
    assert total["hours"] == 3 * 5 + 3 * 2 + 1
    assert total["hours_at_most"] == 3 * 5 + 3 * 7 + 1
    assert total["gpu_hours"] == 3 * 5 + 3 * 2 * 8 + 1
    assert findings.disk_mib(COSTS) == 600 + 2 * 300


def test_a_run_that_would_be_faster_at_full_length_takes_what_was_measured():
    assert findings.hours([Cost("dpo", 1, hours=3.0, hours_at_most=2.0)])["hours_at_most"] == 3.0


def test_too_little_disk_fails():
    assert findings.of_disk(COSTS, 1201).status == "ok"
    full = findings.of_disk(COSTS, 1199)
    assert full.status == "FAIL"
    assert "1.2 GiB" in full.message
    assert "make room" in full.message


def test_the_tables_fit_and_lose_no_word():
    message = "a message that is much longer than one line of a terminal, so that it must go on " * 3
    found = [
        Finding("grpo", "known_tokens/arithmetic", "ok", message),
        Finding("a_recipe_of_another_name/a_stage", "gold", "FAIL", message),
    ]
    text = findings.text(
        found, [*COSTS, Cost("a_recipe_of_another_name/a_stage", 32, 512, 10_400, 1e3, 1e5, 2e5, 2e6, 8e6)]
    )
    assert max(map(len, text.splitlines())) <= findings.WIDTH
    words = text.split()
    assert words.count("terminal,") == 6
    assert {"ok", "FAIL", "10,400"} <= set(words)


def test_a_warning_lets_the_run_start():
    about = {"recipe": "r"}
    assert findings.record(about, [Finding("a", "b", "warn", "c")], COSTS)["ok"]
    record = findings.record(about, [Finding("a", "b", "FAIL", "c")], COSTS)
    assert not record["ok"]
    assert record["recipe"] == "r"
    assert record["checks"] == [{"stage": "a", "check": "b", "status": "FAIL", "message": "c"}]


def test_two_steps_say_nothing_about_how_training_goes():
    bad = health.make_check("entropy", False, 0, 1, "entropy fell")
    assert findings.of_health("grpo", bad, stand_in=False) is None
    assert findings.of_health("grpo", {**bad, "check": "rewards/gold/requests"}, stand_in=False) is None


def test_truncation_is_a_warning_with_what_to_do():
    cut = findings.of_health("grpo", health.truncated(0.4), stand_in=False)
    assert cut.status == "warn"
    assert cut.message.startswith("40.0% of completions are cut")
    assert "max_completion_length" in cut.message
    after = findings.of_health("grpo", health.truncated(0.4), stand_in=True)
    assert after.message.endswith("of a policy that stands in for the trained one")
    assert findings.of_health("grpo", health.truncated(0.05), stand_in=False).status == "ok"


def test_a_gap_between_sampler_and_trainer_is_a_warning():
    (gap,) = health.sampled_as_trained([(1, "sampler_gap", 0.02)], "full")
    assert findings.of_health("grpo", gap, stand_in=False).status == "warn"
    (gap,) = health.sampled_as_trained([(1, "sampler_gap", 1e-6)], "full")
    good = findings.of_health("grpo", gap, stand_in=False)
    assert good.status == "ok"
    assert "?" not in good.message
    (ratio,) = health.sampled_as_trained([(1, "ratio/at_start", 0.02)], "full")
    assert findings.of_health("grpo", ratio, stand_in=False).status == "warn"


@pytest.mark.parametrize(
    ("log", "status", "line"),
    [
        ("noise\nerror: model.path: no folder x\n", 2, "model.path: no folder x"),
        ("Traceback\n  File x\nKeyError: 'a'\n", 1, "KeyError: 'a'"),
        ("", 1, "exit status 1, and an empty log"),
        ("step 1\n", -9, "it was killed, most likely for the host's memory"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a capacity\n",
            1,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.; a smaller",
        ),
    ],
)
def test_one_line_says_why_a_job_failed(tmp_path, log, status, line):
    (tmp_path / "log.txt").write_text(log)
    why = trial.why(status, tmp_path / "log.txt")
    assert why.startswith(line)
    assert "\n" not in why
