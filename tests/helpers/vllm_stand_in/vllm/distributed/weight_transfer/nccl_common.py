"""The trainer's end of the channel of weights: it listens, and each worker of the server connects."""

from multiprocessing.connection import Listener
from types import SimpleNamespace
from typing import Any


def trainer_init(init_info: dict[str, Any]) -> SimpleNamespace:
    assert init_info["rank_offset"] == 1
    assert init_info["packed"]
    with Listener((init_info["master_address"], init_info["master_port"])) as listener:
        workers = [listener.accept() for _ in range(init_info["world_size"] - 1)]
    return SimpleNamespace(workers=workers, group=SimpleNamespace(store=None, socket=None))
