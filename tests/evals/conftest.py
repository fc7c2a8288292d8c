"""A task of lm-eval's own schema; the command that evaluates one task."""

import json

import pytest


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


@pytest.fixture
def command(tmp_path):
    """Evaluates a policy; returns the status, what it wrote, and its rows of samples."""

    from evals import evaluate

    def run(task, model, backend="hf", **inputs):
        out, samples = tmp_path / "after.json", tmp_path / "after.samples.jsonl"
        status = evaluate.main(
            [
                *("--config", json.dumps({"tasks": {"heldout": task}, "seed": 0, "backend": backend})),
                *("--model", str(model), "--name", "r/cpu/base-recipe/seed0/after"),
                *("--out", str(out), "--samples", str(samples)),
                *(word for role, path in inputs.items() for word in ("--input", f"{role}={path}")),
            ]
        )
        if status:
            return status, None, None
        return status, json.loads(out.read_text()), [*map(json.loads, samples.read_text().splitlines())]

    return run
