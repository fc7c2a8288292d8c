"""Programs that would do harm get nothing, harm nothing and end within their limit."""

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from encore.sandbox.pool import GRACE, Job, Limits, Pool
from encore.sandbox.values import same
from tests.encore.sandbox.hostile import PROGRAMS, RIGHT, SECRET, UNENDING

pytestmark = pytest.mark.slow
LIMITS = Limits(wall=0.5, cpu=1, memory=256 << 20)


def processes() -> set[str]:
    """Sandboxes that run as children of this process, and what runs inside them."""
    listed = subprocess.run(["ps", "-eo", "ppid,pid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()[1:]]
    mine, found = {str(os.getpid())}, set()
    while more := {pid for ppid, pid, args in rows if ppid in mine and "encore" not in args} - found:
        found |= more
        mine |= more
    return {pid for ppid, pid, args in rows if pid in found and ("bwrap" in args or "-s -P -S -B" in args)}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """(result, whether it was right) by program, and what they left behind."""
    canary = tmp_path_factory.mktemp("outside") / "canary"
    canary.write_text("untouched")
    os.environ["ENCORE_CANARY"] = "secret"
    with socket.create_server(("127.0.0.1", 0)) as server, Pool(2, LIMITS) as pool:
        server.settimeout(0.1)
        known = {
            "{canary}": canary,
            "{parent}": os.getpid(),
            "{home}": Path.home(),
            "{port}": server.getsockname()[1],
        }
        sources = []
        for source in PROGRAMS.values():
            for name, value in known.items():
                source = source.replace(name, str(value))
            sources.append(source)
        start = time.monotonic()
        results = pool.run([Job(source, ("f(3)",)) for source in sources])
        took = time.monotonic() - start
        after = pool.run([Job(RIGHT, ("f(3)",))])[0]
        try:
            reached = bool(server.accept())
        except TimeoutError:
            reached = False
    return dict(zip(PROGRAMS, results, strict=True)), canary.read_text(), reached, took, after


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_hostile_program_gets_nothing(name, outcomes):
    result = outcomes[0][name]
    assert not same(result.values[0], 3 + SECRET), result
    assert result.ended in ("time", "output", "SIGXCPU") if name in UNENDING else True, result


def test_at_least_sixty_and_each_would_be_paid_if_it_worked():
    assert len(PROGRAMS) >= 60
    with Pool(1, LIMITS) as pool:
        assert same(pool.run([Job(RIGHT, ("f(3)",))])[0].values[0], 3 + SECRET)


def test_nothing_outside_is_touched(outcomes):
    _, canary, reached, took, after = outcomes
    assert canary == "untouched"
    assert not reached
    assert not Path("/owned").exists()
    assert not Path("/etc/owned").exists()
    assert after.values == (3 + SECRET,)  # and the pool still works
    assert took < len(PROGRAMS) * (LIMITS.wall + GRACE) / 2


def test_a_thousand_programs_leave_no_process_and_no_file():
    before, others = set(os.listdir("/tmp")), processes()
    with Pool(2) as pool:
        writing = "open('left', 'w').write('x')" + RIGHT
        results = pool.run([Job(writing if i % 50 == 0 else RIGHT, ("f(3)",)) for i in range(1000)])
        assert processes() - others
    assert [result.values for result in results] == [(3 + SECRET,)] * 1000
    end = time.monotonic() + 5
    while processes() - others and time.monotonic() < end:
        time.sleep(0.05)
    assert not processes() - others
    assert not Path("left").exists()
    assert not {n for n in set(os.listdir("/tmp")) - before if n == "left"}
