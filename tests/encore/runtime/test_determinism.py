"""The key `deterministic` sets torch and vLLM, where it is safe; what has no such algorithm is one line."""

import os
from unittest import mock

import pytest
import torch

from encore.errors import UserError
from encore.runtime.determinism import deterministic

NAMES = ("CUBLAS_WORKSPACE_CONFIG", "VLLM_BATCH_INVARIANT")


def inside(*asked: bool) -> tuple[bool, list[str | None]]:
    """Whether torch is deterministic in the block, and the variables there."""
    with mock.patch.dict(os.environ):
        for name in NAMES:
            os.environ.pop(name, None)
        with deterministic(*asked):
            return torch.are_deterministic_algorithms_enabled(), [os.environ.get(name) for name in NAMES]


def test_torch_and_vllm_are_set():
    assert inside(True) == (True, [":4096:8", "1"])
    assert inside(False) == (False, [None, None])
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_process_that_trains_keeps_its_gradients():
    """vLLM's mode replaces operations of the whole process by some that have none."""
    assert inside(True, True) == (True, [":4096:8", None])


@pytest.mark.usefixtures("unchanged")
def test_an_operation_without_such_an_algorithm_is_one_line():
    told = r"^deterministic: true, but torch has no deterministic algorithm for put_; remove it, or"
    with pytest.raises(UserError, match=told), deterministic(True):
        torch.zeros(3).put_(torch.tensor([0, 0]), torch.ones(2))
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.usefixtures("unchanged")
def test_any_other_error_stays_what_it_is():
    with pytest.raises(RuntimeError, match=r"^another$"), deterministic(True):
        raise RuntimeError("another")


@pytest.fixture
def unchanged():
    with mock.patch.dict(os.environ):
        yield
