"""The real clients read models and data sets of the loopback Hub, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import reasoning_datasets
import true_tokenizers
from data_set_files import write
from hub_server import serving

ROOT = Path(__file__).parents[3]
FIRST, SECOND, ABSENT = "a" * 40, "b" * 40, "d" * 40
READS = """
from datasets import load_dataset
from huggingface_hub import hf_hub_download, snapshot_download
from huggingface_hub.errors import RevisionNotFoundError
from transformers import AutoModelForCausalLM, AutoTokenizer
import sys
first, second, absent = sys.argv[1:]
for revision in (first, second):
    print(len(load_dataset("openai/gsm8k", "main", revision=revision, split="test")))
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B", revision=first)
print(type(model).__name__, type(AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B", revision=first)).__name__)
print(snapshot_download("Qwen/Qwen2.5-0.5B")[-40:])
try:
    hf_hub_download("Qwen/Qwen2.5-0.5B", "config.json", revision=absent)
except RevisionNotFoundError as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
def test_the_real_clients_read_each_revision(tmp_path):
    shape = reasoning_datasets.DATASETS["openai/gsm8k"]
    true_tokenizers.checkpoint("qwen2-base", tmp_path / "model")
    with serving() as hub:
        for revision, folder in ((FIRST, "short"), (SECOND, "long")):
            rows = [*shape.rows] * (1 + (folder == "long"))
            place = write("openai/gsm8k", type(shape)(**{**vars(shape), "rows": rows}), tmp_path / folder)
            hub.shelf.add("datasets", "openai/gsm8k", place, revision)
        hub.shelf.add("models", "Qwen/Qwen2.5-0.5B", tmp_path / "model/final", FIRST)
        env = os.environ | {"PYTHONPATH": str(ROOT)} | hub.reading(tmp_path / "home")
        command = [sys.executable, "-c", READS, FIRST, SECOND, ABSENT]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *("2", "4", "Qwen2ForCausalLM Qwen2Tokenizer"),
        *(FIRST, "RevisionNotFoundError"),
    ]
