"""What all tests share: a tiny checkpoint, and a task to evaluate it on.

Hypothesis has no clock: a busy machine is no reason to fail. One thread: tests have tiny models.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("encore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("encore")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported
gc.disable()  # while pytest collects: what tests import is no garbage


def pytest_collection_modifyitems(items):
    """Files with slow tests first, so that at the end no process is left with a long one alone."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish():
    """From here on the collector runs again; it passes over the modules of torch and TRL."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The metrics.json of a random 1-layer model."""
    from stage_runs import finished

    from encore.models import language_model
    from encore.worlds import make, tokenizer

    folder = tmp_path_factory.mktemp("checkpoint")
    words = tokenizer([make({"world": "chain"})])
    model = language_model.build(
        {"hidden_size": 32, "layers": 1, "max_position_embeddings": 128}, words, seed=0
    )
    model.save_pretrained(folder / "final")
    words.save_pretrained(folder / "final")
    return finished(folder)


@pytest.fixture
def heldout():
    """A world task as a recipe has it; copy and change it."""
    return {
        "task": {"world": "chain"},
        "template": "<user>{question}<assistant>",
        "items": 6,
        "samples": 8,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_gen_toks": 40,
        "k": [1, 4, 8],
    }
