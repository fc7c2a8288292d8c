"""A real vLLM and transformers: the same prompts, the same greedy completions, the same accuracy."""

import json
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import vllm_contract as contract
from true_tokenizers import checkpoint

KINDS = ("llama", "qwen2", "gpt-neox")
GREEDY = {
    **{"task": stage_runs.TASK, "template": stage_runs.TEMPLATE, "items": 64, "samples": 1},
    **{"temperature": 0.0, "top_p": 1.0, "max_gen_toks": 40, "k": [1]},
}


def test_greedy_accuracy_is_that_of_transformers(policy, tmp_path):
    found: dict[str, tuple[Any, list[Any]]] = {}
    for backend, more in (("hf", {}), ("vllm", {"backend_args": {"max_num_seqs": 64}})):
        config = {"tasks": {"greedy": GREEDY}, "seed": 0, "backend": backend, **more}
        files = {"out": "after.json", "samples": "samples.jsonl", "name": "r/cpu/a/seed0/after"}
        options = {"config": json.dumps(config), "model": str(policy), **files}
        command = ["-m", "evals.evaluate", *(f"--{name}={value}" for name, value in options.items())]
        folder = tmp_path / backend
        contract.ended(folder, contract.start(folder, command))
        rows = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
        found[backend] = json.loads((folder / "after.json").read_text())["tasks"], rows
    assert found["hf"] == found["vllm"]
    tasks, rows = found["vllm"]
    assert 0 < tasks["greedy"]["metrics"]["accuracy"]["value"] < 1
    assert len({row["completions"][0] for row in rows}) > 8


@pytest.fixture(scope="module")
def read(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """What both backends made of the prompts of models of true kinds, by tests/vllm/both_backends.py."""
    folder = tmp_path_factory.mktemp("kinds")
    places = [str(checkpoint(kind, folder / kind, contract.SIZE)) for kind in KINDS]
    script = str(Path(__file__).with_name("both_backends.py"))
    contract.ended(folder, contract.start(folder, [script, *places], VLLM_ENABLE_V1_MULTIPROCESSING="0"))
    read = [json.loads(Path(place).with_name("read.json").read_text()) for place in places]
    return dict(zip(KINDS, read, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_completions_and_likelihoods_are_those_of_transformers(read, kind):
    made = read[kind]
    assert made["vllm"]["prompts"] == made["hf"]["prompts"] == made["tokenizer"]
    assert made["vllm"]["engine"] == made["tokenizer"]  # by vLLM's own account
    begins = {ids[0] for ids in made["tokenizer"]}
    assert (begins == {made["bos"]}) == (kind == "llama")
    assert made["vllm"]["completions"] == made["hf"]["completions"]
    assert made["vllm"]["likelihoods"] == pytest.approx(made["hf"]["likelihoods"], abs=1e-4)
