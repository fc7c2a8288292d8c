"""A stage with a vLLM server says how many GPUs it gets; what would be ignored is refused."""

from typing import Any

import pytest

from encore.errors import UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds import read_stage

SERVER = {"use_vllm": True, "vllm_mode": "server"}
COLOCATED = {"use_vllm": True, "vllm_mode": "colocate"}


def stage(args: dict[str, Any], gpu: int = 6, **keys: Any) -> dict[str, Any]:
    plain = {"run": "grpo", "model": {"path": "p"}, "rewards": {"accuracy": 1.0}, "global_batch": 48}
    return {**plain, "args": args, "resources": {"gpu": gpu}, **keys}


@pytest.mark.parametrize(
    "sound",
    [
        stage({}),
        stage(SERVER, vllm_gpus=2),
        stage(COLOCATED),
        stage({**COLOCATED, "vllm_enable_sleep_mode": True}),
        stage({**SERVER, "use_vllm": False}, gpu=0),
    ],
)
def test_sound(sound):
    read_stage(sound).check_rules()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (stage(SERVER), "^vllm_gpus: missing; how many GPUs the server gets, beside the 6 of resources.gpu$"),
        (stage(SERVER, gpu=0, vllm_gpus=2), "^args.vllm_mode: server sends weights from GPU to GPU, but"),
        (stage(COLOCATED, vllm_gpus=2), "^vllm_gpus: without effect; a server is started by"),
        (stage({"vllm_mode": "server"}, vllm_gpus=2), "^vllm_gpus: without effect"),
        (
            stage({**SERVER, "vllm_enable_sleep_mode": True}, vllm_gpus=2),
            "^args.vllm_enable_sleep_mode: a server has its own GPUs and never sleeps; remove it$",
        ),
    ],
)
def test_mistakes(wrong, message):
    with pytest.raises(UserError, match=message):
        read_stage(wrong).check_rules()


def test_a_recipe_is_checked_and_sleep_mode_reaches_the_stage(folder):
    args = {**COLOCATED, "vllm_enable_sleep_mode": True}
    for name, value in args.items():
        folder.set("paper", f"stages/grpo/args/{name}", value)
    config = Graph(folder.load()).config(Node("paper", "cpu", "base-recipe", 0, "grpo", "stage"))
    assert config["args"].items() >= args.items()
    folder.set("paper", "stages/grpo/args/vllm_mode", "sever")
    with pytest.raises(UserError, match=r'vllm_mode: unknown value the text "sever"; did you mean "server"'):
        folder.load()
    folder.set("paper", "stages/grpo/args/vllm_mode", "server")
    with pytest.raises(UserError, match=r"stages\.grpo\.args\.vllm_enable_sleep_mode: a server has its own"):
        folder.load()
    folder.set("paper", "stages/grpo/args/vllm_server_port", 8000)
    with pytest.raises(UserError, match=r"stages\.grpo\.args\.vllm_server_port: set by the stage itself"):
        folder.load()


def test_the_servers_gpus_shape_no_lineage(folder):
    nodes = [Node("paper", "cpu", "base-recipe", 0, "grpo", "stage")]
    for name, value in SERVER.items():
        folder.set("paper", f"stages/grpo/args/{name}", value)
    folder.set("paper", "stages/grpo/resources", {"gpu": 1})
    lineages = set()
    for count in (1, 2):
        folder.set("paper", "stages/grpo/vllm_gpus", count)
        graph = Graph(folder.load())
        assert "vllm_gpus" not in graph.config(nodes[0])
        assert graph.stage(nodes[0]).serving == count
        lineages.add(graph.lineage(nodes[0]))
    assert len(lineages) == 1
