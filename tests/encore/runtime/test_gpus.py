"""A stage gets as many GPUs as it asks for, none that another job uses; torchrun runs it on several."""

import os
import threading

import pytest

from encore.errors import UserError
from encore.runtime import gpus


@pytest.fixture
def four(tmp_path, monkeypatch):
    """A machine with four GPUs, on which nobody has set CUDA_VISIBLE_DEVICES."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(gpus, "LOCKS", tmp_path / "locks")
    monkeypatch.setattr(gpus, "WAIT", 0.01)
    monkeypatch.setenv(gpus.VISIBLE, "")  # restored afterwards
    monkeypatch.delenv(gpus.VISIBLE)


def refuse(message):
    raise AssertionError(message)


def test_nobody_gets_what_another_has(four, monkeypatch):
    seen = []
    with gpus.reserved(1, refuse):
        seen.append(os.environ[gpus.VISIBLE])
        monkeypatch.delenv(gpus.VISIBLE)
        with gpus.reserved(3, refuse):
            seen.append(os.environ[gpus.VISIBLE])
        monkeypatch.delenv(gpus.VISIBLE)
    with gpus.reserved(4, refuse):
        seen.append(os.environ[gpus.VISIBLE])
    assert seen == ["0", "1,2,3", "0,1,2,3"]


def test_it_waits_for_enough_and_says_so_once(four, monkeypatch):
    lines, in_time = [], threading.Event()
    with gpus.reserved(3, refuse):
        monkeypatch.delenv(gpus.VISIBLE)

        def wait():
            with gpus.reserved(2, lines.append):
                in_time.set()

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not in_time.wait(0.1)
    assert in_time.wait(10)
    waiting.join()
    assert lines == ["waiting for GPUs: 2 asked, 1 of 4 are free"]


def test_without_gpus_none_is_seen(four):
    with gpus.reserved(0, refuse) as held:
        assert (held, os.environ[gpus.VISIBLE]) == ([], "")


def test_by_hand_all_are_seen(four):
    with gpus.reserved(None, refuse) as held:
        assert (held, gpus.VISIBLE in os.environ) == ([], False)


def test_what_a_scheduler_gives_is_taken(four, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv(gpus.VISIBLE, "5,7")
    with gpus.reserved(2, refuse) as held:
        assert (held, os.environ[gpus.VISIBLE]) == ([], "5,7")
    with gpus.reserved(1, refuse):
        assert os.environ[gpus.VISIBLE] == "5"


def test_too_few_are_told(four):
    with pytest.raises(UserError, match=r"resources.gpu: 8 asked, 4 visible here; batch sizes"):
        gpus.reserved(8, refuse).__enter__()


def test_the_server_gets_the_last_ones_and_training_the_others(four, monkeypatch):
    monkeypatch.setenv(gpus.SERVING, "")
    with gpus.reserved(3, refuse, serving=1):
        assert (os.environ[gpus.VISIBLE], os.environ[gpus.SERVING]) == ("0,1", "2")
    monkeypatch.setenv(gpus.VISIBLE, "4,5")
    with pytest.raises(UserError, match=r"vllm_gpus: 2 for the server, 2 visible here; none is left"):
        gpus.reserved(2, refuse, serving=2).__enter__()


@pytest.fixture
def old_driver(four, tmp_path, monkeypatch):
    """A driver of before R580: NVML counts the GPUs, and CUDA 13 cannot use them."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\nprintf '550.54.15\\n550.54.15\\n'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.version.cuda", "13.0")


@pytest.mark.parametrize("given", ["", "5"], ids=["reserved", "of a scheduler"])
def test_a_gpu_that_cuda_cannot_use_is_one_line(old_driver, given, monkeypatch):
    monkeypatch.setenv(gpus.VISIBLE, given)
    with pytest.raises(UserError) as error:
        gpus.reserved(1, refuse).__enter__()
    line = str(error.value)
    assert line.startswith(
        "resources.gpu: 1 asked, and torch cannot use them: the NVIDIA driver is 550.54.15, "
    )
    assert "is built for CUDA 13.0, which needs driver 580 or newer" in line
    assert "\n" not in line
    with gpus.reserved(0, refuse):  # the CPU needs no driver
        pass


def test_a_torch_without_cuda_says_so(old_driver, monkeypatch):
    monkeypatch.setattr("torch.version.cuda", None)
    with pytest.raises(UserError, match=r"resources.gpu: 2 asked, and torch .* is built without CUDA"):
        gpus.reserved(2, refuse).__enter__()


def test_the_process_itself_does_not_ask_cuda(four, monkeypatch):
    """After that it could fork no process that uses CUDA: vLLM's engine of an evaluation is one."""
    asked: list[int] = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: not asked.append(os.getpid()))
    with gpus.reserved(1, refuse):
        assert asked == []


def test_fewer_gpus_than_reserved_are_told(four, monkeypatch):
    """One of them is lost between the count and its use."""
    counts = iter([4, 1])
    monkeypatch.setattr("torch.cuda.device_count", lambda: next(counts))
    monkeypatch.setattr("torch.version.cuda", "13.0")
    with pytest.raises(UserError, match=r"resources\.gpu: 2 asked, and torch cannot use them"):
        gpus.reserved(2, refuse).__enter__()


def test_torchrun_gets_the_arguments_and_the_locks(four, monkeypatch):
    ran = []
    monkeypatch.setattr(os, "execv", lambda path, command: ran.append(command))
    with gpus.reserved(2, refuse) as held:
        gpus.launch(2, ["sft", "--seed", "3"], held)
        assert all(os.get_inheritable(lock.fileno()) for lock in held)
    assert ran[0][1:] == [
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        *("-m", "encore.stages", "sft", "--seed", "3"),
    ]


@pytest.mark.parametrize(("rank", "first"), [(None, True), ("0", True), ("3", False)])
def test_the_first_process_writes(rank, first, monkeypatch, tmp_path):
    from encore.runtime import files

    if rank is not None:
        monkeypatch.setenv("RANK", rank)
    assert gpus.first() is first
    files.write(tmp_path / "curve.csv", "step\n")
    assert (tmp_path / "curve.csv").exists() is first
