import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

from encore.errors import UserError
from encore.sandbox.bubblewrap import INSISTS, command
from encore.sandbox.pool import Job, Limits, Pool
from encore.sandbox.seccomp import instructions
from encore.sandbox.values import Failed, read_values, same

needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")


@pytest.fixture(scope="module")
def pool():
    with Pool(2, Limits(wall=5.0)) as pool:
        yield pool


def one(pool, program, *calls):
    return pool.run([Job(program, calls)])[0]


@needs_bubblewrap
def test_values_of_every_built_in_type_come_out_as_they_are(pool):
    values = (
        None,
        True,
        3,
        -(2**70),
        2.5,
        math.inf,
        "ä\n\0",
        [1, [2.0]],
        (1, (2,)),
        {1, 2},
        {(1,): {"a": None}},
    )
    values += (b"\x00\xff", 1 + 2j, [], {})
    result = one(pool, "from math import inf", *map(repr, values))
    assert result.values == values
    assert result.ended == "done"
    assert [type(value) for value in result.values] == [type(value) for value in values]


@needs_bubblewrap
def test_results_come_in_the_order_of_programs(pool):
    jobs = [
        Job(f"import time\ntime.sleep({(i % 3) / 50})\ndef f(x): return x + {i}", ("f(1)",)) for i in range(9)
    ]
    assert [result.values for result in pool.run(jobs)] == [(1 + i,) for i in range(9)]


@needs_bubblewrap
def test_a_call_that_fails_leaves_the_others_their_values(pool):
    result = one(pool, "def f(x): return 1 // x", "f(1)", "f(0)", "f(-1)")
    assert result.values == (1, Failed("ZeroDivisionError"), -1)


@needs_bubblewrap
def test_a_program_that_ends_early_keeps_the_values_it_had(pool):
    result = one(pool, "import os\ndef f(x): return x if x < 2 else os._exit(0)", "f(1)", "f(2)", "f(3)")
    assert result.values == (1, Failed("no value"), Failed("no value"))


@needs_bubblewrap
def test_programs_see_no_file_of_each_other(pool):
    """A tmpfs of its own: a program that leaves a file leaves it to nobody."""
    program = "import os\nfound = os.listdir('.')\nopen('a', 'w').write('x')\ndef f(): return found"
    results = pool.run([Job(program, ("f()", "open('a').read()"))] * 6)
    assert [result.values for result in results] == [([], "x")] * 6


@needs_bubblewrap
def test_programs_see_no_name_of_each_other(pool):
    patch = "import json, math\njson.dumps = math.sqrt = None\nx = 1"
    results = pool.run([Job(patch, ()), Job("import math", ("math.sqrt(4)", "x"))] * 4)
    assert [result.values for result in results[1::2]] == [(2.0, Failed("NameError"))] * 4


@needs_bubblewrap
def test_a_program_that_draws_draws_the_same_again(pool):
    """In any sandbox: its draws and the order of a set, which follows from hashes."""
    job = Job("import random", ("random.random()", "hash('a')"))
    with Pool(1) as other:
        results = [*pool.run([job] * 4), *other.run([job])]
    assert len({result.values for result in results}) == 1
    assert len(results[0].values) == 2


@pytest.mark.slow
@needs_bubblewrap
@pytest.mark.fault(
    "programs that sleep",
    "the sandbox, a rollout's programs",
    "they share one budget of time; the others are paid; a line says how many were ended",
)
def test_programs_that_sleep_have_one_budget_and_others_are_not_kept_waiting(caplog):
    sleep, quick = Job("import time\ntime.sleep(1000)", ("1",)), Job("", ("1",))
    with Pool(2, Limits(budget=2.0)) as pool:
        pool.run([quick] * 2)  # starting the sandboxes does not count
        start = time.monotonic()
        results = pool.run([sleep, quick] * 8)
        took = time.monotonic() - start
    assert [result.values for result in results] == [(Failed("no value"),), (1,)] * 8
    assert [result.ended for result in results] == ["time", "done"] * 8
    assert took < 2 * 2.0  # without a budget 8 * 10 s / 2
    assert "8 of 16 programs ended after 0.5 s, their share of 2 s" in caplog.text


@pytest.mark.slow
@needs_bubblewrap
def test_a_program_that_takes_its_time_is_paid_from_what_is_left_of_the_budget():
    sleep, quick = Job("import time\ntime.sleep(1000)", ("1",)), Job("", ("1",))
    slow = Job("import time\ntime.sleep(0.8)", ("1",))
    with Pool(2, Limits(wall=5.0, budget=6.0)) as pool:
        results = pool.run([sleep, slow, quick, quick, slow, sleep])
    assert [result.ended for result in results] == ["time", "done", "done", "done", "done", "time"]


@needs_bubblewrap
def test_a_lost_sandbox_is_replaced(pool):
    assert one(pool, "", "1").values == (1,)
    for sandbox in pool.idle:
        sandbox.process.kill()
    assert [result.values for result in pool.run([Job("", ("1",))] * 4)] == [(1,)] * 4


@pytest.mark.slow
@needs_bubblewrap
def test_a_pool_whose_parent_is_killed_ends():
    program = (
        "from encore.sandbox.pool import *\n"
        "with Pool(1) as pool:\n"
        " pool.run([Job('', ())])\n print(pool.idle[0].process.pid, flush=True)\n"
        " pool.run([Job('while True: pass', ())])"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    sandbox = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 5
    while os.path.exists(f"/proc/{sandbox}") and time.monotonic() < end:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{sandbox}")


@pytest.mark.slow
def test_fifty_programs_a_second_on_two_cores(monkeypatch):
    """By the processor's time, as others may have the machine too; bubblewrap is started once."""
    monkeypatch.setenv(*INSISTS)
    jobs = [Job(f"def f(x):\n return x * {i}", tuple(f"f({x})" for x in range(8))) for i in range(200)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Pool(2) as bare:
        results = bare.run(jobs)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert all(result.values == tuple(i * x for x in range(8)) for i, result in enumerate(results))
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent / len(jobs) <= 2 / 50


def test_without_bubblewrap_it_refuses_and_says_what_to_do():
    with pytest.raises(UserError, match=r"bubblewrap \(bwrap\) is not installed.*apt install"):
        command({"PATH": "/nowhere"})


def test_no_sandbox_needs_the_whole_words():
    variable, words = INSISTS
    with pytest.raises(UserError, match=f"{variable}: expected"):
        command({"PATH": "/nowhere", variable: "none"})
    assert "bwrap" not in " ".join(command({"PATH": "/nowhere", variable: words})[:3])


def test_who_insists_has_no_sandbox_and_still_right_values(monkeypatch):
    monkeypatch.setenv(*INSISTS)
    with Pool(1) as pool:
        seen = one(pool, "import os\nopen('a', 'w')", "os.path.exists('/proc/self')", "1 + 1")
        assert seen.values == (os.path.exists("/proc/self"), 2)
        assert one(pool, "", "1").values == (1,)


@needs_bubblewrap
def test_a_sandbox_that_does_not_start_says_why(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="does not start here: bwrap: No permissions"), Pool(1) as pool:
        pool.run([Job("", ())])


FORGED = ["", "{}", "[" * 10_000, '{"float": "x"}', '{"set": [[]]}', '{"dict": [[1]]}', '{"error": 4}', "NaN"]
FORGED += [
    '{"no": 4}',
    '[{"error": "a"}]',
    '{"tuple": 4}',
    '{"complex": ["1"]}',
    '{"bytes": "zz"}',
    "1" * 5000,
]
FORGED += ["\0", "4 4"]


@pytest.mark.parametrize("lines", FORGED)
def test_what_a_program_may_send_is_never_right_and_never_raises(lines):
    (value,) = read_values(lines, 1)
    assert not same(value, 4)
    assert not same(value, 4, tolerance=1e-6)
    assert not same(value, [4])


@pytest.mark.parametrize("words", [r"\ud800", "x" * 60_000])
def test_a_forged_reason_is_short_and_of_characters_that_a_tokenizer_takes(words):
    (value,) = read_values(f'{{"error": "{words}"}}', 1)
    assert isinstance(value, Failed)
    assert 0 < len(value.why.encode()) <= 200


def test_numbers_are_compared_within_the_tolerance_of_a_test():
    assert same(0.1 + 0.2, 0.3, 1e-9)
    assert not same(0.1 + 0.2, 0.3)
    assert not same(0.31, 0.3, 1e-9)
    assert not same(10**400, 0.5, 1e-9)
    assert not same(math.nan, 0.5, 1e9)
    assert same([1, (2.0,)], [1.0, (2,)])
    assert not same([1], (1,))
    assert not same(Failed("x"), Failed("x"))


def test_the_filter_is_whole_instructions_of_a_size_that_the_kernel_takes():
    assert len(instructions()) % 8 == 0
    assert 50 <= len(instructions()) // 8 <= 4096
