"""A tiny random model of the chain world, and tasks to evaluate it on."""

import json

import pytest
from scripted import TEMPLATE

from recipes.models import language_model
from recipes.runtime import files, sentinel
from recipes.worlds import make, tokenizer


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """The metrics.json of a random 1-layer model."""
    folder = tmp_path_factory.mktemp("checkpoint")
    words = tokenizer([make({"world": "chain"})])
    model = language_model.build(
        {"hidden_size": 32, "layers": 1, "max_position_embeddings": 128}, words, seed=0
    )
    model.save_pretrained(folder / "final")
    words.save_pretrained(folder / "final")
    record = {
        "model": str(folder / "final"),
        "digest": sentinel.digest(folder / "final"),
        "files": sentinel.sizes(folder / "final"),
    }
    files.write_json(folder / "metrics.json", record)
    return folder / "metrics.json"


@pytest.fixture
def heldout():
    """A world task as a recipe has it; copy and change it."""
    return {
        "task": {"world": "chain"},
        "template": TEMPLATE,
        "items": 6,
        "samples": 8,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_gen_toks": 40,
        "k": [1, 4, 8],
    }


@pytest.fixture
def arithmetic(tmp_path):
    """A folder with a task of lm-eval's own schema: JSON data, a regex filter, exact_match."""
    rows = [{"question": f"{a}+1=", "answer": str(a + 1)} for a in range(4)]
    (tmp_path / "arithmetic.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "arithmetic.yaml").write_text(
        f"""
task: arithmetic
dataset_path: json
dataset_kwargs:
  data_files: {{test: {tmp_path}/arithmetic.jsonl}}
  cache_dir: {tmp_path}/cache
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"], do_sample: false, max_gen_toks: 8}}
filter_list:
  - name: number
    filter:
      - {{function: regex, regex_pattern: "([0-9]+)"}}
      - {{function: take_first}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""
    )
    return tmp_path
