"""`encore push`: what is laid out; and really uploaded, by the Hub's own client, to a Hub on the loopback."""

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from data_set_files import DATA
from hub_server import COMMIT, serving
from huggingface_hub import parse_eval_result_entries

from encore.commands import push
from encore.errors import UserError
from encore.recipe.eval_tasks import EvalTask

ROOT = Path(__file__).parents[3]
SAMPLED = {"samples": 1, "temperature": 0.0, "top_p": 1.0, "max_gen_toks": 8, "k": [1]}
METRICS = {"accuracy": {"value": 0.5, "low": 0.3, "high": 0.7}}


@pytest.fixture
def stage(tmp_path, monkeypatch, checkpoint) -> Path:
    """metrics.json of a stage whose model was evaluated, in a folder of results."""
    monkeypatch.chdir(tmp_path)
    made = json.loads(checkpoint.read_text())
    stage = tmp_path / "results/demo/cpu/base-recipe/seed0/grpo/metrics.json"
    stage.parent.mkdir(parents=True)
    asked = {"kind": "grpo", "config": {"rewards": {"accuracy": 1.0}}, "seed": 0, "inputs": {}}
    stage.write_text(json.dumps(made | asked))
    stage.with_name("provenance.json").write_text(json.dumps({"commit": "abc", "steps": 3, "tokens": 9}))
    after = {"digest": made["digest"], "tasks": {"heldout": {"items": 8, "metrics": METRICS}}}
    other = {"digest": "another", "tasks": {"of-another": {"items": 8, "metrics": METRICS}}}
    (stage.parents[1] / "evals").mkdir()
    (stage.parents[1] / "evals/after.json").write_text(json.dumps(after))
    (stage.parents[1] / "evals/before.json").write_text(json.dumps(other))
    return stage


def pushed(stage: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`encore push` of the stage in a process of its own, for the client reads its environment once."""
    home = stage.parents[5]
    env = os.environ | {"PYTHONPATH": str(ROOT), "HF_HOME": str(home / "hf")} | environment
    command = [sys.executable, "-m", "encore", "push", str(stage), *words]
    told = {"capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(command, cwd=home, env=env, check=False, **told)


def test_a_model_is_laid_out_for_the_hub_and_the_checkpoint_stays_as_it_is(stage):
    made = json.loads(stage.read_text())
    folder = push.lay_out(stage, "me/mine")
    assert folder == Path("results/push/me--mine")
    assert {path.name for path in folder.iterdir()} >= {"README.md", "results.json", "model.safetensors"}
    results = json.loads((folder / "results.json").read_text())["results"]
    assert results == {
        "heldout": {
            "alias": "heldout",
            "accuracy,none": 0.5,
            "accuracy_stderr,none": pytest.approx(0.102, abs=1e-3),
        }
    }
    card = (folder / "README.md").read_text()
    head = yaml.safe_load(card.split("---")[1])
    assert "model-index" not in head  # the Hub's leaderboards read .eval_results
    assert not (folder / ".eval_results").exists()  # no task was of the Hub
    assert "| heldout | accuracy | 0.5 |" in card
    assert push.sentinel.digest(Path(made["model"])) == made["digest"]


def test_scores_on_data_sets_of_the_hub_are_in_the_form_of_its_leaderboards(stage):
    """As the Hub's own client reads it; what was measured elsewhere is not among them."""
    tasks = {
        "gsm8k": EvalTask.model_validate({"lm_eval": "gsm8k", **SAMPLED}),
        "math": EvalTask.model_validate(
            {"task": {**DATA, "subset": "main"}, "template": "{question}", "items": 8, **SAMPLED}
        ),
        "sums": EvalTask.model_validate(
            {"task": {"world": "chain"}, "template": "{question}", "items": 8, **SAMPLED}
        ),
    }
    file = stage.parents[1] / "evals/after.json"
    after = json.loads(file.read_text())
    measured = {"items": 8, "samples": 1, "metrics": METRICS}
    after["tasks"] = {
        name: measured | ({"data_set": task.data_set} if task.data_set else {})
        for name, task in tasks.items()
    }
    file.write_text(json.dumps(after))
    folder = push.lay_out(stage, "me/mine")
    entries = parse_eval_result_entries(yaml.safe_load((folder / ".eval_results/encore.yaml").read_text()))
    assert [(one.dataset_id, one.task_id, one.dataset_revision, one.value) for one in entries] == [
        ("openai/gsm8k", "main", None, 0.5),
        (DATA["hub"], "main", DATA["revision"], 0.5),
    ]
    assert entries[0].notes == "Encore, task gsm8k: accuracy of 1 samples each of 8 items"


def test_what_is_no_model_or_no_name_is_one_line(stage):
    with pytest.raises(UserError, match=r"expected the metrics\.json of a stage that is done"):
        push.lay_out(stage.parents[1] / "nothing.json", "me/mine")
    with pytest.raises(UserError, match=r"me/mine/more: expected org/name, as the Hub has it"):
        push.lay_out(stage, "me/mine/more")


def test_nothing_leaves_the_machine_unless_told(stage):
    with serving() as hub:
        done = pushed(stage, "me/mine", **hub.environment())
        assert done.returncode == 0
        assert "dry: nothing was uploaded to me/mine; --really does it" in done.stdout
        assert hub.asked == []


@pytest.mark.slow
@pytest.mark.parametrize(("words", "visibility"), [((), "private"), (("--public",), "public")])
def test_every_file_is_uploaded_as_it_is_in_one_commit(stage, words, visibility):
    with serving() as hub:
        done = pushed(stage, "me/mine", "--really", *words, **hub.environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{hub.address}/me/mine/commit/{COMMIT}"
    (created,) = hub.created
    assert (created["organization"], created["name"], created["visibility"]) == ("me", "mine", visibility)
    (commit,) = hub.commits
    assert commit.pop("summary") == "Encore: model, card, results"
    folder = stage.parents[5] / "results/push/me--mine"
    here = {path.name: path.read_bytes() for path in folder.iterdir()}
    weights = here["model.safetensors"]
    assert commit == here | {"model.safetensors": sha256(weights).hexdigest()}  # large: by its digest
    assert hub.stored == {sha256(weights).hexdigest(): weights}
    assert not any("telemetry" in request for request in hub.asked)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "status", "xet", "why"),
    [
        ("/repos/create", 401, False, "it does not know you (401): `hf auth login`, or set HF_TOKEN"),
        ("/repos/create", 403, False, "the token may not write there (403)"),
        ("/lfs/put/", 403, False, "the token may not write there (403)"),
        ("/commit/", 409, False, "409"),
        ("/xet-write-token/", 404, True, "404 Not Found"),  # by the storage that the Hub prefers
    ],
)
def test_a_refusal_of_the_hub_is_one_line(stage, part, status, xet, why):
    with serving() as hub:
        hub.fails[part] = status
        done = pushed(stage, "me/mine", "--really", **hub.environment(xet))
    assert done.returncode == 2
    assert hub.commits == []
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith(f"error: me/mine: not uploaded to {hub.address}: ")
    assert why in line
    assert line.endswith("results/push/me--mine has all that was to go")
    assert "Traceback" not in done.stderr
    assert hub.token not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_network_that_is_gone_is_one_line(stage):
    with serving() as hub:
        pass  # its port is closed again
    done = pushed(stage, "me/mine", "--really", **hub.environment())
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"not uploaded to {hub.address}: " in done.stderr
    done = pushed(stage, "me/mine", "--really", **hub.environment() | {"HF_HUB_OFFLINE": "1"})
    assert done.returncode == 2
    assert "offline" in done.stderr.splitlines()[-1].lower()
