"""What a job sets for its process."""

import ctypes
import os
import subprocess
import sys

import pytest

from encore.runtime.environment import ALLOCATOR, expandable_segments
from encore.sampling import vllm_server

FAULTS = """
import resource
from encore.runtime.environment import keep_memory
{call}
for _ in range(10):
    blocks = [bytearray(8 * 2**20) for _ in range(12)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_freed_memory_is_kept():
    """Ten times 96 MiB are 245,760 pages of 4 KiB; 24,576 if the first ones are taken again."""
    plain, kept = (
        int(subprocess.run([sys.executable, "-c", FAULTS.format(call=call)], capture_output=True).stdout)
        for call in ("", "keep_memory()")
    )
    assert kept < plain / 3


def test_bitsandbytes_says_nothing_of_kernels_that_nobody_asked_for():
    """It warns wherever it is installed: in the log of each job, and before each answer of `encore chat`."""
    code = (
        "import logging; from encore.runtime import environment; environment.quiet_environment(False); "
        "logger = logging.getLogger('bitsandbytes.backends.cpu.ops'); logger.warning('w'); logger.error('e')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "e\n"


@pytest.mark.parametrize("name", ["HF_HUB_DISABLE_TELEMETRY", "VLLM_NO_USAGE_STATS"])
def test_what_a_job_starts_reports_to_nobody(name):
    """A vLLM server is a process of its own: it has the variable from the job that starts it."""
    code = (
        "import os; from encore.runtime.environment import quiet_environment; quiet_environment(True); "
        "from encore.sampling.vllm_server import environment; "
        f"print(os.environ.get('{name}'), environment('').get('{name}'))"
    )
    kept = {key: value for key, value in os.environ.items() if key != name}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=kept)
    assert done.stdout == "1 1\n"


@pytest.mark.parametrize("name", [None, *ALLOCATOR])
def test_blocks_of_gpu_memory_grow_unless_the_user_has_said_how(name, monkeypatch):
    for each in ALLOCATOR:
        monkeypatch.setenv(each, "")  # so that it is as before after the test
        monkeypatch.delenv(each)
    if name:
        monkeypatch.setenv(name, "max_split_size_mb:64")
    expandable_segments()
    said = [value for each in ALLOCATOR if (value := os.environ.get(each))]
    assert said == ["max_split_size_mb:64" if name else "expandable_segments:True"]
    assert (ALLOCATOR[0] in vllm_server.environment("0")) is (
        name == ALLOCATOR[0]
    )  # a server has its own way
