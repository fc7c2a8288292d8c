"""A tiny recipe tried from end to end by its own stages, and each mistake that a preflight is to find."""

import json
import os
from functools import partial
from pathlib import Path

import pytest
import true_tokenizers
import yaml
from forked_jobs import forked
from stage_runs import TASK, TEMPLATE
from toy_preflight import RECIPE

from encore.forecast import preflight as command
from encore.forecast import probes
from encore.forecast.preflight import main, preflight
from encore.recipe.chosen import first_node
from encore.recipe.graph import Graph
from encore.recipe.load import load_all
from encore.runtime import digests
from encore.runtime.lock import only_one


@pytest.fixture
def tried(tmp_path, monkeypatch, capsys):
    """A changed recipe and a trap -> the content of preflight.json, and what was printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").touch()  # as in a clone, whose recipes are used

    def of(change=lambda recipe: None, trap=None):
        recipe = json.loads(json.dumps(RECIPE))
        change(recipe)
        (tmp_path / "recipes").mkdir(exist_ok=True)
        (tmp_path / "recipes/toy.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
        graph = Graph(load_all())
        arm = first_node(graph, "toy", "cpu")
        result = preflight(graph, arm, None, tmp_path / "work", forked(trap))
        return result, capsys.readouterr().out

    return of


def checks(result, stage):
    return {one["check"]: one for one in result["checks"] if one["stage"] == stage}


def failures(result):
    return [(one["stage"], one["check"]) for one in result["checks"] if one["status"] == "FAIL"]


@pytest.mark.slow
def test_from_end_to_end(tried, tmp_path):
    result, printed = tried()
    assert result["ok"], printed
    of_grpo = checks(result, "grpo")
    assert {"ends", "gold", "gold_of_next", "garbage", "known_tokens", "same_template", "context"} <= {
        *of_grpo
    }
    assert {one["status"] for name, one in of_grpo.items() if name != "truncation"} == {"ok"}
    assert of_grpo["truncation"]["status"] == "warn"  # a policy of two steps writes on and on
    assert of_grpo["memory"]["message"].endswith("and a completion of 12")
    cost = {one["stage"]: one for one in result["costs"]}
    assert [*cost] == ["pretrain", "grpo", "eval after"]
    assert (cost["pretrain"]["runs"], cost["grpo"]["runs"]) == (1, 2)
    assert (cost["pretrain"]["steps"], cost["grpo"]["steps"]) == (18, 26)
    assert all(one["hours"] > 0 for one in result["costs"])
    assert cost["grpo"]["state_mib"] > cost["grpo"]["product_mib"] > 0
    assert result["total"]["hours"] == pytest.approx(sum(one["runs"] * one["hours"] for one in cost.values()))
    assert max(map(len, printed.splitlines())) <= 100
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "Snakefile",
        "recipes",
        "work",
    ]  # no results, no checkpoints

    spent = json.loads((tmp_path / "work/toy-stage-pretrain/two-steps/provenance.json").read_text())
    assert spent["epochs"] == pytest.approx(2 / 3, abs=1e-6)
    assert spent["first_step_s"] > 0
    assert cost["pretrain"]["step_s"] == spent["step_s"] > 0

    # every completion of the longest rows came to the cap
    rows = (tmp_path / "work/toy-stage-grpo/longest/completions.jsonl").read_text().splitlines()
    assert {json.loads(row)["tokens"] for row in rows} == {12}


def pays_for_anything():
    from encore.rewards import rules

    rules.formatted = lambda completion: True


def refuses_gold():
    from encore.worlds.chain import Chain

    Chain.verify = lambda self, problem, completion: False


@pytest.mark.parametrize(
    ("trap", "says"),
    [
        (pays_for_anything, "health check garbage: format gives 1 to the completion ''"),
        (refuses_gold, "health check gold: the gold answer"),
    ],
)
@pytest.mark.slow
def test_a_reward_that_is_wrong_fails_in_one_line(tried, trap, says):
    result, printed = tried(trap=trap)
    assert not result["ok"]
    assert failures(result) == [("grpo", "runs")]
    assert checks(result, "grpo")["runs"]["message"].startswith(says)
    assert checks(result, "pretrain")["runs"]["status"] == "ok"
    assert checks(result, "eval after")["not tried"]["message"] == "it needs grpo, which failed"
    assert "Traceback" not in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("awaited", "status"), [(["<|endoftext|>", "<|im_end|>"], 0), (["<|endoftext|>"], 1)]
)
def test_a_checkpoint_that_does_not_await_its_own_end_of_a_turn(
    tmp_path, monkeypatch, capsys, awaited, status
):
    """Its template ends turns with <|im_end|>; replies end with what generation_config.json lists."""
    monkeypatch.chdir(tmp_path)
    folder = true_tokenizers.checkpoint("qwen2", tmp_path / "instruct").parent / "final"
    words, config = true_tokenizers.qwen2(), folder / "generation_config.json"
    ends = words.convert_tokens_to_ids(awaited)
    config.write_text(json.dumps(json.loads(config.read_text()) | {"eos_token_id": ends}))
    grpo = {key: value for key, value in RECIPE["stages"]["grpo"].items() if key not in ("needs", "template")}
    grpo |= {"model": {"path": str(folder)}, "chat": True}
    (tmp_path / "recipes").mkdir()
    (tmp_path / "Snakefile").touch()  # as in a clone, whose recipes are used
    recipe = {**RECIPE, "stages": {"grpo": grpo}, "evals": {}}
    (tmp_path / "recipes/toy.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    monkeypatch.setattr(command, "preflight", partial(preflight, run=forked()))

    assert main(["--recipe", "toy", "--scale", "cpu"]) == status, capsys.readouterr().out
    result = json.loads((tmp_path / "results/toy/cpu/preflight.json").read_text())
    assert failures(result) == ([("grpo", "ends")] if status else [])
    assert checks(result, "grpo")["runs"]["status"] == "ok"  # two steps do not show it
    end = words.eos_token_id
    says = f"the tokenizer ends texts with '<|im_end|>' ({end}), generation_config.json replies with {ends}: "
    told = f"FAIL grpo: ends: {says}make them agree, or training teaches another end than sampling awaits"
    failing = [line for line in capsys.readouterr().err.splitlines() if line.startswith("FAIL")]
    assert failing == [told] * status


@pytest.mark.slow
def test_a_model_that_is_missing_fails_its_stage_alone(tried):
    def change(recipe):
        del recipe["stages"]["grpo"]["needs"]
        recipe["stages"]["grpo"]["model"] = {"path": "nowhere"}

    result, _ = tried(change)
    assert failures(result) == [("grpo", "runs")]
    assert checks(result, "grpo")["runs"]["message"] == "model.path: no folder nowhere"
    assert checks(result, "pretrain")["runs"]["status"] == "ok"


@pytest.mark.slow
def test_what_a_library_raises_is_one_line_too(tried, monkeypatch):
    def unreachable(config, inputs, seed):
        if config["run"] == "grpo":
            raise OSError("the Hub cannot be reached\nTraceback and all")
        return []

    monkeypatch.setattr(probes, "of_stage", unreachable)
    result, _ = tried()
    assert failures(result) == [("grpo", "runs")]
    assert checks(result, "grpo")["runs"]["message"] == "OSError: the Hub cannot be reached"
    assert checks(result, "pretrain")["runs"]["status"] == "ok"


def test_one_preflight_at_a_time(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "Snakefile").touch()  # as in a clone, whose recipes are used
    (tmp_path / "recipes/toy.yaml").write_text(yaml.safe_dump(RECIPE, sort_keys=False))
    with only_one(Path("checkpoints/.preflight.lock"), print):
        assert main(["--recipe", "toy", "--scale", "cpu"]) == 2
    assert f"error: process {os.getpid()} is at a preflight in this folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--recipe", "toyy", "--scale", "cpu"], 'unknown recipe "toyy"; did you mean "toy"?'),
        (["--recipe", "toy", "--scale", "gpu"], 'recipe toy has no scale "gpu"; did you mean "cpu"?'),
        (["--recipe", "toy", "--scale", "cpu", "--arm", "base"], 'unknown arm "base" at scale cpu'),
    ],
)
def test_a_mistake_in_the_command_is_one_line(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "Snakefile").touch()  # as in a clone, whose recipes are used
    (tmp_path / "recipes/toy.yaml").write_text(yaml.safe_dump(RECIPE, sort_keys=False))
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert len(captured.err.splitlines()) == 1
    assert not (tmp_path / "results").exists()


def chain(recipe):
    """All kinds that make data or learn from them, behind a policy that gets nothing right."""
    drawing = {"num_generations": 2, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 12}
    asked = {"task": TASK, "template": TEMPLATE, "problems": 100}
    learning = {"learning_rate": 1e-3, "lr_scheduler_type": "constant", "num_train_epochs": 2}
    args = {**learning, "per_device_train_batch_size": 8, "max_length": 48}
    dpo = {"loss_type": ["sigmoid"], "beta": 0.1, "optim": "adamw_torch"}
    recipe["stages"] = {
        "pretrain": recipe["stages"]["pretrain"],
        "right": {"run": "rejection_sampling", "needs": {"policy": "pretrain"}, **asked, "args": drawing},
        "sft": {"run": "sft", "needs": {"policy": "pretrain", "data": "right"}, "args": args},
        "sample": {"run": "sample", "needs": {"policy": "sft"}, **asked, "args": drawing},
        "label": {"run": "label", "needs": {"data": "sample"}, "by": "verifier"},
        "dpo": {
            "run": "dpo",
            "needs": {"policy": "sft", "data": "label"},
            "pairs": "all",
            "args": {**args, **dpo},
        },
        "kto": {
            "run": "kto",
            "needs": {"policy": "sft", "data": "label"},
            "pairs": "one",
            "args": {**args, "beta": 0.1, "optim": "adamw_torch"},
        },
        "reward_model": {
            "run": "reward_model",
            "needs": {"policy": "sft", "data": "label"},
            "comparisons": "grouped",
            "args": args,
        },
    }
    recipe["evals"] = {}


@pytest.mark.slow
def test_data_that_two_steps_cannot_make_have_stand_ins(tried):
    result, printed = tried(chain)
    assert result["ok"], printed
    assert checks(result, "right")["runs"]["status"] == "warn"
    assert checks(result, "right")["runs"]["message"].startswith("0 of 128 completions kept")
    assert checks(result, "label")["runs"]["status"] == "warn"
    for stage in ("sft", "dpo", "kto", "reward_model"):
        assert checks(result, stage)["runs"]["status"] == "ok"
        assert checks(result, stage)["memory"]["status"] == "ok"
    cost = {one["stage"]: one for one in result["costs"]}
    assert {"right", "sft", "sample", "label", "dpo", "kto", "reward_model"} < {*cost}
    assert cost["sample"]["hours"] > 0
    # about as many steps as all of the data take: 2 epochs of up to 200 rows, 8 a step
    assert 40 <= cost["sft"]["steps"] <= 52
    assert 10 <= cost["reward_model"]["steps"] <= 26


@pytest.mark.slow
def test_what_is_done_is_gone_on_from(tried, tmp_path):
    """A stage that the run has made is not tried again, and later stages have its true product."""

    def short(recipe):
        recipe["evals"] = {}

    tried(short)
    made = tmp_path / "work/toy-stage-pretrain/two-steps"
    graph = Graph(load_all())
    arm = first_node(graph, "toy", "cpu")
    (node,) = [one for one in graph.grid("toy", "cpu", ["base-recipe"], [arm.seed]) if one.name == "pretrain"]
    path = Path(node.sentinel)
    path.parent.mkdir(parents=True)
    path.write_bytes((made / "metrics.json").read_bytes())
    digests.record(path).write_text(graph.lineage(node))
    before = {file: file.read_bytes() for file in (tmp_path / "results").rglob("*") if file.is_file()}

    result, _ = tried(short)
    assert [*checks(result, "pretrain")] == ["done"]
    assert [one["stage"] for one in result["costs"]] == ["grpo"]
    assert "stands in" not in checks(result, "grpo")["truncation"]["message"]
    assert before == {file: file.read_bytes() for file in (tmp_path / "results").rglob("*") if file.is_file()}
