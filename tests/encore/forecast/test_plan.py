"""Plans before anything is spent: memory by part, and what fits."""

import json
import math
from dataclasses import replace

import pytest
from papers import GRAPH, RECIPES
from test_model_size import hub

from encore.errors import UserError
from encore.forecast import memory, plan, table
from encore.forecast.__main__ import main, planned
from encore.forecast.hardware import GIB, GPUS, Assumptions, change, machine, named_in
from encore.forecast.job import Generation, Job, Training
from encore.forecast.memory import lacks
from encore.forecast.model_size import of_model
from encore.forecast.plan import of_job
from encore.forecast.work import of_node
from encore.recipe.graph import Node


def trained(gpus=1, **fields):
    given = {"steps": 1, "batch": 8, "rows": 1, "mean": 512, "longest": 1024, "half": True}
    given |= fields
    return Training(**given | {"computed": given["longest"]}), gpus


def fine_tuning(model, gpus=1, shard=False, **fields):
    training, gpus = trained(gpus, **fields)
    return Job("sft", "sft", gpus, policy=model, shard=shard, training=training)


def lacking(job, gpu):
    return lacks(job, of_model(job.policy), memory.of_trainer(job, gpu), gpu)


def test_adam_holds_sixteen_bytes_a_parameter_and_autocast_two_more():
    model = hub("Qwen/Qwen2.5-0.5B")
    held = memory.of_trainer(fine_tuning(model), GPUS["H100"])
    assert held.gradients + held.optimizer == 12 * of_model(model).parameters
    assert held.weights == 6 * of_model(model).parameters


def test_fsdp_spreads_all_three_and_gathers_a_layer():
    model = hub("Qwen/Qwen2.5-32B")
    size = of_model(model)
    held = memory.of_trainer(fine_tuning(model, gpus=16, shard=True), GPUS["H100"])
    assert held.gradients + held.optimizer == 12 * size.parameters / 16
    assert 4 * size.parameters / 16 < held.weights < 4 * size.parameters / 16 + 10 * GIB


def test_adapters_have_gradients_and_moments_of_their_own_alone():
    model = hub("Qwen/Qwen2.5-0.5B")
    held = memory.of_trainer(fine_tuning(model, lora=16), GPUS["H100"])
    assert held.gradients + held.optimizer < 0.05 * held.weights


def test_checkpointing_keeps_the_residual_stream_of_each_layer_and_all_of_one():
    job = fine_tuning(hub("Qwen/Qwen2.5-1.5B"), longest=4096)
    less = replace(job, training=replace(job.training, checkpointing=True))
    of_all, of_one = (memory.of_trainer(one, GPUS["H100"]).activations for one in (job, less))
    assert of_one < of_all / 6


def test_deepseekmath_in_float32_is_refused_on_a_gpu_of_80_gib():
    """Whole on each GPU it does not fit; the overlay, which shards it, does."""
    node = Node("deepseekmath", "paper", "base-recipe", 0, "grpo", "stage")
    job = of_node(GRAPH, node, Assumptions())
    assert job.shard
    whole = replace(job, shard=False)
    held = memory.of_trainer(whole, GPUS["A100"])
    assert held.total > 2 * GPUS["A100"].memory
    assert "GiB a GPU" in lacks(whole, of_model(job.policy), held, GPUS["A100"])[0]
    full = replace(job, training=replace(job.training, half=False), shard=False)
    assert lacking(full, GPUS["A100"])
    assert not lacking(job, GPUS["A100"])


def test_an_engine_too_small_for_its_weights_is_refused():
    drawn = Generation(10, 10, 1024, 300, 100, "vllm")
    job = Job(
        "eval", "eval", 1, policy=hub("Qwen/Qwen2.5-32B"), generation=replace(drawn, width=1, share=0.3)
    )
    found = lacks(job, of_model(job.policy), memory.of_trainer(job, GPUS["H100"]), GPUS["H100"])
    assert "vLLM needs" in found[0]
    four = replace(job, generation=replace(job.generation, width=4), gpus=4)
    assert not lacking(four, GPUS["H100"])


def test_a_judge_takes_room_operations_and_a_download():
    given = {"recipe": "tldr", "scale": "gpu"}
    job = of_node(GRAPH, Node("tldr", "gpu", "base-recipe", 0, "after", "eval"), Assumptions())
    [(judge, tokens)] = job.judges
    assert tokens > 2 * 1024 * job.generation.prompt  # each post is read in both orders
    size, alone = of_model(judge), replace(job, judges=())
    both, one = (of_job(each, GPUS["A100"], Assumptions()) for each in (job, alone))
    assert both.memory.reward - one.memory.reward == 2 * size.parameters
    assert both.flops - one.flops == pytest.approx(2 * size.active * tokens)
    assert both.hours > one.hours
    made = plan.make(GRAPH, given)
    others = [
        replace(row, estimate=replace(row.estimate, job=replace(row.estimate.job, judges=())))
        for row in made.rows
    ]
    assert made.disk - replace(made, rows=tuple(others)).disk == pytest.approx(2 * size.parameters)


def test_twice_the_utilisation_halves_training():
    job = fine_tuning(hub("Qwen/Qwen2.5-1.5B"))
    slow, fast = (of_job(job, GPUS["H100"], change(Assumptions(), {"mfu": mfu})).hours for mfu in (0.2, 0.4))
    assert slow == pytest.approx(2 * fast)


def test_machines_are_read_and_a_wrong_one_named():
    assert machine("8xH100") == (8, GPUS["H100"])
    assert machine("a100-40") == (None, GPUS["A100-40"])
    with pytest.raises(UserError, match=r'no GPU "8xH10".*did you mean "H100"'):
        machine("8xH10")
    with pytest.raises(UserError, match="no GPU"):
        machine("0xH100")
    assert named_in("128 H800 for about a week").name == "H800"
    assert named_in("2 cores") is None


@pytest.mark.parametrize("key", ["mfu", "price", "length"])
@pytest.mark.parametrize("value", [0, -1, "much", True, math.nan, math.inf])
def test_an_assumption_that_is_no_share_or_number_is_refused(key, value):
    with pytest.raises(UserError, match=f"{key}: expected a number above 0"):
        change(Assumptions(), {key: value})


def test_dynamic_sampling_draws_no_fewer_rollouts_than_it_keeps():
    with pytest.raises(UserError, match=r"rounds: expected a number of at least 1, got 0\.2"):
        change(Assumptions(), {"rounds": 0.2})


PAPER = [name for name, recipe in RECIPES.items() if "paper" in recipe.scales]


@pytest.fixture(scope="module", params=PAPER)
def made(request):
    return plan.make(GRAPH, {"recipe": request.param, "scale": "paper", "price": 2})


@pytest.mark.slow
def test_every_overlay_of_a_paper_fits_or_says_that_it_does_not(made):
    about = RECIPES[made.recipe].layers.content["scales"]["paper"]["about"]
    lacking = [row.name for row in made.rows if row.estimate.lacks]
    assert ("does not fit" in about) == bool(lacking), lacking


@pytest.mark.slow
def test_a_table_is_at_most_100_columns_wide_and_its_json_says_the_same(made):
    lines = table.text(made).splitlines()
    assert max(map(len, lines)) <= table.WIDTH
    read = json.loads(table.as_json(made))
    assert read["gpu_hours"] == pytest.approx(sum(job["gpu_hours"] * job["runs"] for job in read["jobs"]))
    assert read["money"] == pytest.approx(2 * read["gpu_hours"])
    assert set(table.MEANING) == set(read["assumed"])
    for job in read["jobs"]:
        parts = job["memory_bytes"]
        freed = min(parts["activations"], parts["cache"] + parts["asleep"])
        whole = sum(size for part, size in parts.items() if part != "asleep") - freed
        assert job["memory_total_bytes"] == pytest.approx(whole)


def test_fewer_gpus_are_those_of_every_stage_that_is_spread():
    for recipe, split in (("dapo", (8, 0)), ("r1_zero", (4, 4))):  # the second one has a vLLM server
        made = plan.make(GRAPH, {"recipe": recipe, "scale": "paper", "gpus": "8xH100"})
        jobs = [row.estimate.job for row in made.rows if row.name == "grpo"]
        assert {(job.gpus, job.server) for job in jobs} == {split}


def test_a_batch_that_does_not_divide_is_refused_where_it_stands():
    made = plan.make(GRAPH, {"recipe": "dr_grpo", "scale": "paper", "gpus": "7xA100"})
    assert "does not divide among 7 GPUs" in made.rows[0].estimate.lacks[0]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["recipe=dap", "scale=paper"], 'recipe: no recipe "dap"; did you mean "dapo"?'),
        (["recipe=dapo", "scale=papers"], 'scale: recipe dapo has no scale "papers"; did you mean "paper"?'),
        (["recipe=dapo", "scal=paper"], 'scal: unknown key; did you mean "scale"?'),
        (["dapo"], '"dapo": expected key=value, such as recipe=dapo'),
        (["recipe=dapo", "seeds=none"], "seeds: expected a whole number of at least 1, got none"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(words, line, capsys, monkeypatch):
    monkeypatch.setattr("encore.forecast.__main__.load_all", lambda user_file=None: RECIPES)
    assert planned(words) == 2
    assert capsys.readouterr().err == f"error: {line}\n"


def test_a_command_that_there_is_not_is_one_line(capsys):
    assert main(["plann", "recipe=dapo"]) == main([]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == 'error: no command "plann"; did you mean "plan"?'
    assert second.startswith('error: no command ""')


def test_the_command_prints_the_table_and_writes_json(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("encore.forecast.__main__.OUT", tmp_path)
    monkeypatch.setattr("encore.forecast.__main__.load_all", lambda user_file=None: RECIPES)
    assert main(["plan", "recipe=r1_zero", "scale=paper"]) == 1
    assert "DOES NOT FIT" in capsys.readouterr().out
    assert json.loads((tmp_path / "r1_zero" / "paper" / "plan.json").read_text())["fits"] is False
    assert main(["plan", "recipe=r1_zero"]) == 0
    assert "no GPU: all of it fits" in capsys.readouterr().out


def test_a_stage_learns_from_texts_as_long_as_those_of_who_made_its_data():
    """Pairs of a data set come through a stage of their own; texts of a world are short wherever they are."""
    sft, dpo = (Node("dpo", "gpu", "base-recipe", 0, name, "stage") for name in ("sft", "dpo"))
    for node in (sft, dpo):
        assert of_node(GRAPH, node, Assumptions()).training.mean == 512 * Assumptions().document
    of_world = Node("dpo", "gpu-offline", "base-recipe", 0, "dpo", "stage")
    job = of_node(GRAPH, of_world, Assumptions())
    assert 20 < job.training.mean < 45
    assert not lacks(job, of_model(job.policy), memory.of_trainer(job, GPUS["A100"]), GPUS["A100"])


def test_what_a_tool_may_say_lies_beside_the_completion():
    job = of_node(GRAPH, Node("tools", "gpu", "base-recipe", 0, "grpo", "stage"), Assumptions())
    alone = of_node(GRAPH, Node("tools", "gpu", "no-tool", 0, "grpo", "stage"), Assumptions())
    assert job.training.longest - alone.training.longest == 3 * 256


def test_a_prompt_that_a_group_shares_is_held_once():
    """An H200 held 5.5 GB (the mean of twelve runs), where a copy of the prompt a completion would be 38."""
    job = of_node(GRAPH, Node("r1_zero", "small-gpu", "base-recipe", 1, "grpo", "stage"), Assumptions())
    assert job.training.rows * job.training.computed == 8 * 512 + 64 * 32
    assert 5.5e9 < memory.of_trainer(job, GPUS["H200"]).total < 2 * 5.5e9


def test_ppo_by_adapters_holds_no_reference_beside_the_policy():
    whole, adapted = (
        of_node(GRAPH, Node("instructgpt", scale, "base-recipe", 0, "ppo", "stage"), Assumptions())
        for scale in ("gpu", "gpu-24gb")
    )
    assert of_model(whole.reference).parameters == of_model(adapted.policy).parameters
    assert adapted.reference is None


def test_a_reference_is_kept_as_it_computes_unless_it_moves_or_is_spread():
    """Of the 3.09 billion weights of Qwen2.5-3B, 0.31 lie in its embedding, which is its head too."""
    job = of_node(GRAPH, Node("four_habits", "gpu", "base-recipe", 0, "grpo", "stage"), Assumptions())

    def held(job: Job) -> float:
        return memory.of_trainer(job, GPUS["A100"]).reference

    assert held(job) == pytest.approx(2 * 2.775e9 + 4 * 0.311e9, rel=0.01)
    whole = 4 * of_model(job.policy).parameters
    assert held(replace(job, training=replace(job.training, synced=True))) == whole
    assert held(replace(job, training=replace(job.training, half=False))) == whole
    assert held(replace(job, kind="dpo")) == whole
    assert held(replace(job, shard=True, gpus=4)) == whole / 4


def test_a_model_that_an_earlier_stage_has_stretched_stays_so():
    node = Node("distill", "gpu", "distilled-then-rl", 0, "rl", "stage")
    job = of_node(GRAPH, node, Assumptions())
    longest, has = job.training.longest, of_model(job.policy).positions
    assert longest > has
    assert not lacks(job, of_model(job.policy), memory.of_trainer(job, GPUS["A100"]), GPUS["A100"])
    assert any(
        "positions" in why
        for why in lacks(
            replace(job, stretched=False),
            of_model(job.policy),
            memory.of_trainer(job, GPUS["A100"]),
            GPUS["A100"],
        )
    )


def test_every_round_of_dynamic_sampling_is_sampled_and_scored():
    """The policy learns from one rollout of two, but samples both and computes old log-probabilities."""
    filtered, plain = (
        of_node(GRAPH, Node("scaling", "cpu", arm, 100, "grpo", "stage"), Assumptions(rounds=2.0))
        for arm in ("base-recipe", "unfiltered")
    )
    one, two = (of_job(job, GPUS["H100"], Assumptions()).flops for job in (plain, filtered))
    assert plain.training.scored == filtered.training.scored > 0
    per_token = 2 * of_model(plain.policy).active
    sampled = plain.generation.completions * (plain.generation.prompt + plain.generation.mean)
    trained = plain.training.steps * plain.training.batch * plain.training.mean
    assert two - one == pytest.approx(per_token * (sampled + trained), rel=0.1)


@pytest.mark.parametrize(("arm", "passes"), [("base-recipe", 0.0), ("stale-4", 1.0), ("stale-4-plain", 0.0)])
def test_a_stale_rollout_is_read_once_more_if_the_loss_corrects_for_its_age(arm, passes):
    job = of_node(GRAPH, Node("staleness", "cpu", arm, 1000, "grpo", "stage"), Assumptions())
    assert job.training.scored == passes
