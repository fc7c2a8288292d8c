"""Which loss an arm minimised, told from its settings."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from papers import GRAPH, RECIPES
from toy_run import changed

from analysis.numbers.run import Run
from analysis.training import loss_settings, objectives


def of(run, arms: dict, **stage):
    """The toy run with these arms' args over the recipe's stage, which gets the keys of `stage`."""
    overlays = {name: {"stages": {"grpo": {"args": args}}} for name, args in arms.items()}
    stages = {"grpo": run.recipe.layers.content["stages"]["grpo"] | stage}
    return replace(changed(run, stages=stages, arms=overlays), arms=tuple(arms))


def test_an_arm_is_told_by_what_defines_its_loss(run):
    dapo = {"loss_type": "dapo", "epsilon_high": 0.28, "beta": 0.0, "mask_truncated_completions": True}
    gspo = {"importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4, "beta": 0.0}
    arms = {"base-recipe": {}, "dapo": dapo, "gspo": gspo, "wide": {"epsilon": 10.0}}
    table = objectives.optimised(of(run, arms)).set_index("arm")
    base = table.loc["base-recipe"]
    assert (base.objective, base.loss_type, base.KL) == ("grpo-kl", "grpo", "0.001 k3")
    assert (base["over std"], base["clip range"]) == ("group", f"0.8 {objectives.DASH} 1.2")
    assert (base["updates per rollout"], base["group size"]) == ("4", "8")
    assert (table.objective["dapo"], table.KL["dapo"]) == ("dapo", "none")
    assert table["clip range"]["dapo"] == f"0.8 {objectives.DASH} 1.28"
    assert table["clip range"]["wide"] == f"0 {objectives.DASH} 11"  # no ratio is below 0
    assert table.also["dapo"] == "cut completions masked"
    assert (table.objective["gspo"], table.ratio["gspo"]) == ("gspo", "sequence")
    assert table["clip range"]["gspo"] == f"0.9997 {objectives.DASH} 1.0004"


def test_arms_of_one_loss_share_a_row(run):
    arms = {"base-recipe": {}, "slow": {"learning_rate": 1.0e-5}, "alike": {"save_steps": 7}}
    shown = objectives.grouped(objectives.optimised(of(run, arms)))
    assert shown.arm.to_list() == ["base-recipe, alike", "slow"]
    assert shown["learning rate"].to_list() == ["0.0001", "1e-05"]


@pytest.mark.parametrize(
    ("args", "updates"),
    [
        ({"steps_per_generation": 8, "gradient_accumulation_steps": 2}, "4"),
        ({"steps_per_generation": 4, "num_iterations": 2}, "8"),
        ({"steps_per_generation": 1}, "1"),
        ({"steps_per_generation": None, "gradient_accumulation_steps": 2}, "1"),  # one batch, once
        ({"steps_per_generation": None, "generation_batch_size": 64, "per_device_train_batch_size": 32}, "2"),
    ],
)
def test_updates_per_rollout(run, args, updates):
    assert objectives.optimised(of(run, {"base-recipe": args}))["updates per rollout"].item() == updates


def test_what_our_trainers_add_is_told(run):
    keys = {"advantage": "leave_one_out", "importance_ratio": "none", "old_logp_noise": 0.1}
    keys |= {"dynamic_sampling": {"max_rounds": 3}, "replay": {"every": 40, "share": 0.1}}
    row = objectives.optimised(of(run, {"base-recipe": {}}, **keys)).iloc[0]
    assert (row.objective, row.ratio, row["clip range"], row["over std"]) == ("rloo", "none", "none", "no")
    assert row.advantage == "r - mean of the others"
    assert "at most 3 rounds" in row.also
    assert "10% replay" in row.also


def test_a_tool_is_told_and_whether_its_results_are_learned(run):
    tool = {"tool": {"name": "calculator", "calls": 3, "longest": 5}}
    for keys, told in ((tool, "masked"), ({**tool, "learn_results": True}, "in the loss")):
        row = objectives.optimised(of(run, {"base-recipe": {}}, **keys)).iloc[0]
        assert f"calculator, at most 3 calls, results {told}" in row.also


@pytest.mark.parametrize(("correction", "told"), [(True, "corrected"), (False, "not corrected")])
def test_staleness_is_told_and_whether_the_loss_corrects_for_it(run, correction, told):
    args = {"vllm_importance_sampling_correction": correction}
    row = objectives.optimised(of(run, {"base-recipe": args}, max_staleness=4, sampler="lean")).iloc[0]
    assert f"staleness 4, {told}" in row.also.split("; ")


def test_domains_and_rising_caps_are_told(run):
    own = {"task": {"world": "chain"}, "template": "{question}", "rewards": {"soft_overlong": 1.0}}
    keys = {
        "domains": {"reasoning": own | {"share": 0.75}, "general": own | {"share": 0.25}},
        "caps": {"0": 56, "1200": 96},
        "soft_overlong_cache": 8,
    }
    row = objectives.optimised(of(run, {"base-recipe": {}}, **keys)).iloc[0]
    assert row.also.startswith(
        "domains reasoning 75%, general 25%; completions of at most 56 tokens, 96 from step 1,200 on; "
    )
    assert "soft overlong punishment in the last 8 tokens" in row.also


@pytest.mark.parametrize(
    ("keys", "args", "name", "clip"),
    [
        ({"importance_ratio": "none"}, {}, "rgra", "none"),
        ({"advantage": "raw"}, {}, "raw-clipped", f"0.8 {objectives.DASH} 1.2"),
        ({"advantage": "above_mean"}, {}, "grpo-above-mean", f"0.8 {objectives.DASH} 1.2"),
        ({}, {"loss_type": "sapo"}, "sapo", "none"),
        ({}, {"loss_type": "cispo", "epsilon_high": 1.3}, "cispo", f"0 {objectives.DASH} 1.3"),
    ],
)
def test_what_no_recipe_runs_is_not_called_by_anothers_name(run, keys, args, name, clip):
    row = objectives.optimised(of(run, {"base-recipe": args}, **keys)).iloc[0]
    assert (row.objective, row["clip range"]) == (name, clip)


@pytest.mark.parametrize(
    ("keys", "std"),
    [({}, "group"), ({"advantage": "above_mean"}, "group"), ({"advantage": "raw"}, "no")],
)
def test_what_an_advantage_is_divided_by_is_told(run, keys, std):
    row = objectives.optimised(of(run, {"base-recipe": {}}, **keys)).iloc[0]
    assert row["over std"] == std


def test_every_recipe_of_the_repository_can_be_told():
    """And no objective of a grpo stage is without its rows in the conformance table."""
    known = set(pd.read_csv(objectives.CONFORMANCE).objective)
    for name, recipe in RECIPES.items():
        if arms := recipe.arms("cpu"):
            table = objectives.optimised(Run(GRAPH, name, "cpu", tuple(arms), (0,)))
            assert len(table) >= len(arms) or name == "tiny_lm"
            if "loss_type" in table:
                assert set(table.objective[table.loss_type != objectives.DASH]) <= known


def test_conformance_is_of_the_objectives_that_were_run(run, tmp_path):
    two = of(run, {"base-recipe": {}, "bnpo": {"loss_type": "bnpo"}})
    (tmp_path / "recipes").mkdir()  # with a Snakefile, tmp_path is a clone and has tables of its own
    (tmp_path / "Snakefile").touch()
    assert not len(objectives.conformance(replace(two, root=tmp_path)))
    path = tmp_path / objectives.CONFORMANCE
    path.parent.mkdir(parents=True)
    path.write_text(
        "objective,property,status,size,note\n"
        "grpo-kl,KL,exact,< 1e-05,<b>Eq. 4</b>\n"
        "gspo,ratio,exact,< 1e-05,Eq. 7\n"
        'bnpo,micro-batches,deviates,12%,"a mean, of each"\n'
    )
    shown = objectives.conformance(replace(two, root=tmp_path))
    assert shown.objective.to_list() == ["grpo-kl", "bnpo"]
    assert shown.status.to_list() == ["exact", "deviates"]


def test_the_page_shows_conformance_folded_and_escaped(quick_results, plain_page, monkeypatch):
    rows = [("grpo-kl", "KL", "corrected", "3%", "<b>Eq. 4</b>"), ("grpo-kl", "std", "deviates", "0.9", "")]
    table = pd.DataFrame(rows, columns=["objective", "property", "status", "size", "note"])
    monkeypatch.setattr(objectives, "conformance", lambda run: table)
    text = plain_page(quick_results)
    folded = text.split("How exactly these are the papers' equations: 1 corrected, 1 deviates")[1]
    assert '<span class="badge corrected">corrected</span>' in folded.split("</details>")[0]
    assert "&lt;b&gt;Eq. 4&lt;/b&gt;" in folded
    assert "<b>Eq. 4</b>" not in text


def test_objectives_of_ppo_and_dpo_are_told(rlhf):
    rows = objectives.optimised(rlhf).set_index("arm")
    assert rows.loc["kl-strong", "KL"] == "0.4 k1 in the reward"
    assert rows.loc["kl-none", "KL"] == "none"
    assert rows.loc["base-recipe", "also"] == (
        "rewarded by reward model; critic from reward model, loss x 0.1, clipped at 0.2"
    )
    assert rows.loc["dpo", "objective"] == "dpo, sigmoid"
    assert rows.loc["dpo", "KL"] == "beta 0.1"
    assert objectives.clip_range(rlhf, "base-recipe") == (0.8, 1.2)
    assert objectives.clip_range(rlhf, "dpo") is None


def test_variants_of_dpo_are_told_apart():
    def row(arm: str, stage: str = "dpo") -> dict[str, str]:
        return loss_settings.described(RECIPES["dpo_family"].stage("cpu", arm, stage))

    beta = RECIPES["dpo_family"].stage("cpu", "base-recipe", "dpo").args.beta
    assert row("base-recipe")["KL"] == f"beta {beta:g}"
    assert row("simpo")["KL"].startswith("no reference, beta ")
    assert re.search(r", gamma [\d.]+$", row("simpo")["also"])
    assert row("orpo")["objective"] == "dpo, orpo"
    assert (row("kto", "kto")["objective"], row("kto", "kto")["mean over"]) == ("kto", "completions")
    assert row("kto-unpaired", "kto")["objective"] == "kto, one of each pair"


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_the_loss_of_every_stage_can_be_told(recipe):
    known = RECIPES[recipe]
    arms = [(scale, arm) for scale in known.scales for arm in known.arms(scale)]
    for scale, arm in arms:
        for name in known.stages(scale, arm):
            stage = known.stage(scale, arm, name)
            row = loss_settings.described(stage)
            assert bool(row) == (stage.run in objectives.RL)
            assert all(row.values())
