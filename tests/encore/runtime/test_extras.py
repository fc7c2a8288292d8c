"""Where vLLM is asked for and not installed, a job says so in one line, before it loads anything."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from encore.errors import UserError
from encore.runtime.extras import require_bitsandbytes, require_liger, require_vllm

WITHOUT = """
import importlib.util, sys
plain = importlib.util.find_spec
missing = ("vllm", "bitsandbytes")
importlib.util.find_spec = lambda name, *rest: None if name in missing else plain(name, *rest)
from {module} import main
status = main(sys.argv[1:])
loaded = {{"torch", "transformers", "trl", "lm_eval"}} & {{*sys.modules}}
sys.exit(f"loaded: {{loaded}}" if loaded else status)
"""
STAGE = ["grpo", "--seed", "0", "--name", "r/cpu/a/seed0/grpo", "--checkpoints", "checkpoints"]
QLORA = {"rank": 1, "alpha": 1, "quantized": "nf4"}
ADVICE = "but vLLM is not installed here; `pip install -e '.[vllm]'`, or leave the key out"

EXTRAS = {"lora.quantized: nf4": ("qlora", "bitsandbytes")}


@pytest.mark.slow
def test_a_stage_and_an_evaluation_say_it_before_they_load_anything(tmp_path, checkpoint):
    task = {"task": {"world": "chain"}, "template": "{question}", "items": 1, "samples": 1}
    task |= {"temperature": 1.0, "top_p": 1.0, "max_gen_toks": 4, "k": [1]}
    config = {"backend": "vllm", "seed": 0, "tasks": {"heldout": task}}
    for module, arguments, asked in (
        (
            "encore.stages.__main__",
            [*STAGE, "--config", json.dumps({"args": {"use_vllm": True}}), "--out", "metrics.json"],
            "args.use_vllm: true",
        ),
        (
            "encore.stages.__main__",
            [
                *STAGE,
                "--config",
                json.dumps({"lora": QLORA}),
                "--out",
                "metrics.json",
            ],
            "lora.quantized: nf4",
        ),
        (
            "evals.evaluate",
            [
                *("--config", json.dumps(config), "--model", str(checkpoint)),
                *("--name", "r/cpu/a/seed0/after", "--out", "after.json", "--samples", "after.jsonl"),
            ],
            "evals.backend: vllm",
        ),
    ):
        command = [sys.executable, "-c", WITHOUT.format(module=module), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        extra, package = EXTRAS.get(asked, ("vllm", "vLLM"))
        advice = ADVICE.replace("vllm", extra).replace("vLLM", package)
        assert (done.returncode, done.stderr) == (2, f"error: {asked}, {advice}\n")


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        ({"backend": "vllm"}, "backend: vllm"),
        ({"args": {"use_vllm": True, "vllm_mode": "server"}}, "args.use_vllm: true"),
        ({"backend": "hf", "args": {"use_vllm": False}}, None),
        ({}, None),
    ],
)
def test_which_jobs_ask_for_it(monkeypatch, config, asked):
    monkeypatch.setattr("encore.runtime.extras.find_spec", lambda name: None)
    if asked is None:
        require_vllm(config)
    else:
        with pytest.raises(UserError, match=f"^{asked}, but vLLM is not installed here"):
            require_vllm(config)
    monkeypatch.setattr("encore.runtime.extras.find_spec", lambda name: SimpleNamespace(origin="here"))
    require_vllm(config)


def test_weights_of_4_bits_ask_for_bitsandbytes(monkeypatch):
    monkeypatch.setattr("encore.runtime.extras.find_spec", lambda name: None)
    require_bitsandbytes({"lora": {"rank": 8}})
    require_bitsandbytes({})
    with pytest.raises(UserError, match=r"^lora\.quantized: nf4, but bitsandbytes is not installed"):
        require_bitsandbytes({"lora": {"quantized": "nf4"}})
    monkeypatch.setattr("encore.runtime.extras.find_spec", lambda name: SimpleNamespace(origin="here"))
    require_bitsandbytes({"lora": {"quantized": "nf4"}})


def test_fused_kernels_ask_for_liger(monkeypatch):
    monkeypatch.setattr("encore.runtime.extras.find_spec", lambda name: None)
    require_liger({"args": {"use_liger_kernel": False}})
    require_liger({})
    with pytest.raises(UserError, match=r"^args\.use_liger_kernel: true, but Liger is not .*\[liger\]"):
        require_liger({"args": {"use_liger_kernel": True}})
    monkeypatch.setattr("encore.runtime.extras.find_spec", lambda name: SimpleNamespace(origin="here"))
    require_liger({"args": {"use_liger_kernel": True}})
