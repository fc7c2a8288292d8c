"""Every mistake in a recipe is one line: file, key path, what is wrong, what would be right."""

import copy

import pytest

from encore.errors import UserError

TASK = "evals/tasks/heldout"
OVERLAY = "arms/hot/stages/grpo"


def test_the_unspoilt_recipes_load(folder):
    assert list(folder.load()) == ["paper", "tiny"]


@pytest.mark.parametrize(
    ("recipe", "keys", "value", "message"),
    [
        # keys
        ("paper", "titel", "x", 'titel: unknown key; did you mean "title"?'),
        ("paper", "stages/grpo/arg", {}, 'stages.grpo.arg: unknown key; did you mean "args"?'),
        ("paper", "stages/grpo/args/lerning_rate", 1.0,
         'stages.grpo.args.lerning_rate: unknown key; did you mean "learning_rate"?'),
        ("paper", f"{OVERLAY}/args/temprature", 1.0,
         'arms.hot.stages.grpo.args.temprature: unknown key; did you mean "temperature"?'),
        ("tiny", "stages/pretrain/args/loss_type", "grpo",
         'stages.pretrain.args.loss_type: unknown key'),
        ("tiny", "stages/pretrain/model/layer", 2,
         'stages.pretrain.model.layer: unknown key; did you mean "layers"?'),
        ("paper", f"{TASK}/sample", 3, 'evals.tasks.heldout.sample: unknown key; did you mean "samples"?'),
        ("paper", "claims/lifts/test/margins", 1,
         'claims.lifts.test.margins: unknown key; did you mean "margin"?'),
        ("paper", "stages/grpo/args/output_dir", "x",
         "stages.grpo.args.output_dir: set by the stage itself; remove it"),
        ("paper", "stages/grpo/args/fsdp", True,
         "stages.grpo.args.fsdp: set by the stage itself; write resources: {shard: fsdp} instead"),
        ("paper", "stages/grpo/args/deepspeed", "ds.json",
         "stages.grpo.args.deepspeed: set by the stage itself; write resources: {shard: fsdp} instead"),
        ("paper", "stages/grpo/resources/shard", "zero3",
         'stages.grpo.resources.shard: unknown value the text "zero3"; valid: fsdp'),
        # types and values
        ("paper", "evals/resources", {"nodes": 2}, "evals.resources.nodes: expected at most 1, got 2"),
        ("paper", "evals/resources", {"gpu": 32}, "evals.resources.gpu: 32 on one machine, but no machine"),
        ("paper", "stages/grpo/args/learning_rate", "3e-6",
         'stages.grpo.args.learning_rate: expected a number, got the text "3e-6"; write 3.0e-6'),
        ("paper", "stages/grpo/args/max_steps", "1e3",
         'stages.grpo.args.max_steps: expected a whole number, got the text "1e3"; write 1000'),
        ("paper", "stages/grpo/args/num_iterations", 1.5,
         "stages.grpo.args.num_iterations: expected a whole number, got 1.5"),
        ("paper", "stages/grpo/args/lr_scheduler_type", False,
         "stages.grpo.args.lr_scheduler_type: expected text, got false"),
        ("paper", "stages/grpo/args/loss_type", "drgrpo",
         'stages.grpo.args.loss_type: unknown value the text "drgrpo"; did you mean "dr_grpo"?'),
        ("paper", "seeds", 0, "seeds: expected at least 1, got 0"),
        ("paper", "first_seed", -1, "first_seed: expected at least 0, got -1"),
        ("paper", "claims/lifts/test/direction", "up",
         'claims.lifts.test.direction: unknown value the text "up"; valid: equal, higher, lower'),
        ("paper", "stages/grpo/task", {"world": "chian"},
         'stages.grpo.task.world: no world "chian"; did you mean "chain"?'),
        ("paper", f"{OVERLAY}/importance_ratio", "sequence",
         'importance_ratio: unknown value the text "sequence"; did you mean "sequence_token"?'),
        ("paper", OVERLAY, {"importance_ratio": "none", "old_logp_noise": 0.1},
         "stages.grpo.old_logp_noise: without effect, because importance_ratio none has no old"),
        ("paper", "stages/grpo/soft_overlong_cache", 8,
         "stages.grpo.rewards.soft_overlong: missing; rewards.soft_overlong and soft_overlong_cache go"),
        ("paper", "stages/grpo/rewards", {"soft_overlong": 1.0}, "stages.grpo.soft_overlong_cache: missing"),
        ("paper", "stages/grpo/dynamic_sampling", {"max_round": 3},
         'stages.grpo.dynamic_sampling.max_round: unknown key; did you mean "max_rounds"?'),
        ("paper", "stages/grpo/dynamic_sampling", {"max_rounds": 0},
         "stages.grpo.dynamic_sampling.max_rounds: expected at least 1, got 0"),
        ("tiny", "stages/pretrain/corpus/mixture", {"chainn": 1.0},
         'has no kind "chainn"; did you mean "chain"?'),
        # names
        ("paper", "stages/grpo/run", "gropo",
         'stages.grpo.run: unknown stage kind "gropo"; did you mean "grpo"?'),
        ("paper", "stages/grpo/needs/policy", "tiny/pretrian",
         'stages.grpo.needs.policy: unknown stage of recipe tiny "pretrian"; did you mean "pretrain"?'),
        ("paper", "stages/grpo/needs/policy", "tinny/pretrain",
         'stages.grpo.needs.policy: unknown recipe "tinny"; did you mean "tiny"?'),
        ("paper", "stages/grpo/needs/policy", "tiny/pretrain@othr",
         'stages.grpo.needs.policy: unknown arm of recipe tiny at scale cpu "othr"; did you mean "other"?'),
        ("paper", "arms/hot/stages/gpro", {}, 'arms.hot.stages.gpro: unknown stage; did you mean "grpo"?'),
        ("paper", "scales/cpu/arms", {"hott": {"stages": {}}},
         'scales.cpu.arms.hott: unknown arm at scale cpu; did you mean "hot"?'),
        ("paper", "scales/cpu/arms", {"hot": {"stages": {"grpo": {"args": {"beat": 0.1}}}}},
         'scales.cpu.arms.hot.stages.grpo.args.beat: unknown key; did you mean "beta"?'),
        ("paper", "arms/hot/scales", ["cqu"], 'arms.hot.scales: unknown scale "cqu"; did you mean "cpu"?'),
        ("paper", "ladder", ["base-recipe", "hott"], 'ladder: unknown arm "hott"; did you mean "hot"?'),
        ("paper", "factors", {"heat": {"cold": "base-recipe", "hot": "hott"}},
         'factors.heat: unknown arm "hott"; did you mean "hot"?'),
        ("paper", "leave_one_out", {"full": "hot"}, "leave_one_out.without: missing"),
        ("paper", "leave_one_out", {"full": "ho", "without": ["hot"]},
         'leave_one_out.full: unknown arm "ho"; did you mean "hot"?'),
        ("paper", "leave_one_out", {"full": "hot", "without": ["hoot"]},
         'leave_one_out.without: unknown arm "hoot"; did you mean "hot"?'),
        ("paper", "stages/evals", {"run": "grpo"}, "stages.evals: a reserved name"),
        ("paper", "arms/report", {}, "arms.report: a reserved name; call the arm something else"),
        ("paper", "arms/Hot", {},
         'arms: expected a name of lower-case letters, digits, "-" and, before a digit, ".", got "Hot"'),
        ("paper", "evals/checkpoints/after", "grp",
         'evals.checkpoints.after: unknown stage (scale cpu, arm base-recipe) "grp"; did you mean "grpo"?'),
        ("paper", "evals/checkpoints/before", "grpo.polcy", 'did you mean "policy"?'),
        ("paper", f"{TASK}/checkpoints", ["aftr"],
         'evals.tasks.heldout.checkpoints: unknown checkpoint "aftr"; did you mean "after"?'),
        ("paper", f"{TASK}/k", [8],
         "evals.tasks.heldout.k: 8 is more than samples: 4; pass@k needs k samples (scale cpu, arm"),
        # claims
        ("paper", "claims/lifts/test/of", "hott/after",
         'claims.lifts.test.of: unknown arm "hott"; did you mean "hot"?'),
        ("paper", "claims/lifts/test/of", "hot/aftr",
         'claims.lifts.test.of: unknown checkpoint or stage "aftr"; did you mean "after"?'),
        ("paper", "claims/lifts/test/of", "hot/grp",
         'claims.lifts.test.of: unknown checkpoint or stage "grp"; did you mean "grpo"?'),
        ("paper", "claims/lifts/test/of", "hot/grpo",
         "claims.lifts.test.metric: expected a final number of stage hot/grpo: last/…"),
        ("paper", "claims/lifts/test/metric", "last/entropy",
         'claims.lifts.test.metric: "last/entropy" is a number of training, but base-recipe/after is '
         "a checkpoint; the stages: grpo"),
        ("paper", "claims/lifts/needs", "ratio",
         'claims.lifts.needs: expected GATE >= NUMBER, GATE <= NUMBER or GATE within P%, got "ratio"'),
        ("paper", "claims/lifts/test/smallest_effect", 0,
         "claims.lifts.test.smallest_effect: expected more than 0, got 0"),
        ("paper", "claims/lifts/primary", "yes",
         'claims.lifts.primary: expected true or false, got the text "yes"'),
        ("paper", "claims/lifts/test/of", "only-cpu/after",
         'claims.lifts.test.of: arm "only-cpu" does not exist at scale paper; there are: base-recipe, hot'),
        ("paper", "claims/lifts/test/metric", "held/accuracy",
         'claims.lifts.test.metric: unknown task at base-recipe/after (scale cpu) "held"'),
        ("paper", "claims/lifts/test/metric", "heldout/acuracy",
         'claims.lifts.test.metric: unknown metric "acuracy"; did you mean "accuracy"?'),
        ("paper", "claims/lifts/test/metric", "heldout/pass@2",
         'claims.lifts.test.metric: unknown metric "pass@2"; did you mean "pass@4"?'),
        ("paper", "claims/lifts/test/margin", -0.1,
         "claims.lifts.test.margin: expected at least 0, got -0.1"),
        # roles
        ("paper", "stages/grpo/needs/polcy", "tiny/pretrain",
         'stages.grpo.needs.polcy: unknown key; did you mean "policy"?'),
        ("paper", f"{OVERLAY}/needs", {"policy": None, "teacher": "tiny/pretrain"},
         'arms.hot.stages.grpo.needs.teacher: unknown key; valid: policy'),
        ("tiny", "stages/pretrain/needs", {"policy": "paper/grpo"},
         "stages.pretrain.needs.policy: unknown key"),
        # null where nothing is below it
        ("paper", "stages/grpo/needs/policy", None, "stages.grpo.needs.policy: expected text, got nothing"),
        ("paper", "evals/tasks/heldout", None, "evals.tasks.heldout: null, but no layer below has the key"),
        ("paper", "evals/checkpoints/after", None, "evals.checkpoints.after: null, but no layer below"),
        ("paper", f"{OVERLAY}/run", None, "arms.hot.stages.grpo.run: expected text, got nothing"),
        # what a stage or a task must have
        ("paper", "evals/checkpoints", {}, "evals.checkpoints: missing: there are tasks, and nothing to"),
        ("paper", "evals/tasks", {}, "evals.tasks: expected at least one task"),
        ("paper", f"{TASK}/temperature", 0, "heldout.samples: temperature 0 gives 4 equal samples"),
        ("paper", f"{TASK}/template", "{q}", "heldout.template: expected {question} exactly once"),
        ("paper", "stages/grpo/template", "<user>", "stages.grpo.template: expected {question} exactly once"),
        ("paper", "stages/grpo/rewards", {}, "stages.grpo.rewards: must not be empty"),
        ("paper", "stages/grpo/rewards", {"acuracy": 1},
         'stages.grpo.rewards.acuracy: unknown reward; did you mean "accuracy"?'),
        ("paper", "stages/grpo/rewards", {"position": 1}, "stages.grpo.rewards.position: unknown reward"),
        ("tiny", "stages/pretrain/corpus", {"documents": 10}, "stages.pretrain.corpus.mixture: missing"),
        ("tiny", "stages/pretrain/corpus", {}, "stages.pretrain.corpus.documents: missing"),
        ("tiny", "stages/pretrain/model", {"hidden_size": 64}, "stages.pretrain.model.layers: missing"),
        ("tiny", "stages/pretrain/model/head_dim", 16,
         "stages.pretrain.model.head_dim: expected one of (32, 64, 128), got 16"),
        ("tiny", "stages/pretrain/model", {"hidden_size": 64, "layers": 2, "heads": 4, "kv_heads": 3},
         "stages.pretrain.model.kv_heads: 3 does not divide heads = 4"),
        ("paper", "stages/grpo/task", {"hub": "a/b", "revision": "a" * 40, "split": "x", "question": "q",
                                       "answer": "a", "verifier": "code"},
         'stages.grpo.task.verifier: expected math, countdown, tests or my_module:function, got "code"'),
        ("paper", "quickstart", {"arms": ["only-cpu"]}, "quickstart.arms: none of them exists at scale"),
        ("paper", "stages/grpo/args/loss_type", "vespo",
         "stages.grpo.args.loss_type: encore/objectives/grpo.py has no loss vespo; write it as your own "
         "objective"),
        # the whole
        ("paper", "scales/paper/stages/grpo/model/revision", "main",
         'stages.grpo.model.revision: expected the 40 hexadecimal digits of a Hub commit, got "main"'),
        ("paper", "stages/grpo/model", {"path": "here"},
         "stages.grpo: it starts from either needs.policy or model; both are given"),
    ],
)  # fmt: skip
def test_mistake(folder, recipe, keys, value, message):
    folder.set(recipe, keys, value)
    with pytest.raises(UserError) as error:
        folder.load()
    text = error.value.lines[0]
    assert text.startswith(f"{folder.path / recipe}.yaml: ")
    assert message in text
    alone = keys != "stages/grpo/model"  # at scale paper it has other keys then, which is told as well
    assert len(error.value.lines) == 1 or not alone


@pytest.mark.parametrize("field", ["loss_type", "beta", "epsilon", "vllm_importance_sampling_correction"])
def test_objective_defining_field_must_be_written_out(folder, field):
    folder.remove("paper", f"stages/grpo/args/{field}")
    default = {"loss_type": "'dapo'", "beta": "0.0", "epsilon": "0.2"}.get(field, "True")
    with pytest.raises(
        UserError, match=rf"stages\.grpo\.args\.{field}: missing; .*default {default} would be used"
    ):
        folder.load()


def test_either_of_two_fields_says_how_often_a_rollout_is_used(folder):
    folder.remove("paper", "stages/grpo/args/steps_per_generation")
    folder.set("paper", "stages/grpo/args/generation_batch_size", 32)
    folder.load()


def test_an_arm_that_deletes_a_field_is_checked_too(folder):
    folder.set("paper", f"{OVERLAY}/args/beta", None)
    with pytest.raises(UserError, match=r"args\.beta: missing; .*\(scale cpu, arm hot\)"):
        folder.load()


def test_all_mistakes_are_told_at_once(folder):
    """Of the file's keys, of each stage and arm, of evaluations and of claims; those of several arms once."""
    folder.set("paper", "titel", "x")
    folder.set("paper", "claims/lifts/test/margins", 1)
    folder.set("paper", "stages/grpo/args/lerning_rate", 1.0)
    folder.set("paper", "stages/grpo/args/max_steps", "1e3")
    folder.set("paper", f"{OVERLAY}/args/temprature", 1.0)
    folder.set("paper", "arms/only-cpu/scales", ["cqu"])
    folder.set("paper", "ladder", ["base-recipe", "hott"])
    with pytest.raises(UserError) as error:
        folder.load()
    assert [line.removeprefix(f"{folder.path}/paper.yaml: ") for line in error.value.lines] == [
        'claims.lifts.test.margins: unknown key; did you mean "margin"?',
        'titel: unknown key; did you mean "title"?',
        'arms.only-cpu.scales: unknown scale "cqu"; did you mean "cpu"?',
        'ladder: unknown arm "hott"; did you mean "hot"?',
        'stages.grpo.args.lerning_rate: unknown key; did you mean "learning_rate"?',
        'stages.grpo.args.max_steps: expected a whole number, got the text "1e3"; write 1000',
        'arms.hot.stages.grpo.args.temprature: unknown key; did you mean "temperature"?',
    ]


def test_all_mistakes_that_layers_come_to_are_told_at_once(folder):
    folder.set("paper", "stages/grpo/rewards", {"acuracy": 1})
    folder.set("paper", "stages/grpo/needs/policy", "tinny/pretrain")
    folder.set("paper", f"{OVERLAY}/args/beta", None)
    folder.set("paper", "claims/lifts/test/of", "hott/after")
    claim = copy.deepcopy(folder.specs["paper"]["claims"]["lifts"])
    claim["test"] |= {"metric": "held/accuracy", "of": "hot/after"}
    folder.set("paper", "claims/other", claim)
    with pytest.raises(UserError) as error:
        folder.load()
    assert [line.removeprefix(f"{folder.path}/paper.yaml: ") for line in error.value.lines] == [
        'stages.grpo.needs.policy: unknown recipe "tinny"; did you mean "tiny"?',
        'stages.grpo.rewards.acuracy: unknown reward; did you mean "accuracy"? (scale cpu, arm base-recipe)',
        "stages.grpo.args.beta: missing; it defines the objective, and TRL's default 0.0 would be used "
        "silently; write it out (scale cpu, arm hot)",
        'claims.lifts.test.of: unknown arm "hott"; did you mean "hot"?',
        'claims.other.test.metric: unknown task at hot/after (scale cpu) "held"; did you mean "heldout"?',
    ]


def test_a_claim_about_what_has_a_mistake_is_not_looked_into(folder):
    folder.set("paper", "evals/checkpoints/before", "grop")
    folder.remove("paper", "stages/grpo/args/beta")
    assert "stages.grpo.args.beta: missing" in folder.mistake()


def test_cycle_across_recipes(folder):
    folder.set("paper", "stages/grpo/needs/policy", "tiny/rl")
    rl = folder.specs["paper"]["stages"]["grpo"] | {"needs": {"policy": "paper/grpo"}}
    folder.set("tiny", "stages/rl", rl)
    with pytest.raises(UserError, match=r"a cycle: paper/grpo needs tiny/rl needs paper/grpo"):
        folder.load()


def test_empty_evals_of_a_recipe_with_tasks_at_a_scale(folder):
    folder.set("paper", "scales/cpu/evals", folder.specs["paper"]["evals"] | {"checkpoints": {}})
    folder.set("paper", "evals", {})
    with pytest.raises(UserError, match=r"evals\.checkpoints: missing"):
        folder.load()


def test_a_worlds_own_rewards_can_be_named(folder):
    folder.set("paper", "stages/grpo/task", {"world": "sort"})
    folder.set("paper", "stages/grpo/rewards", {"position": 1.0, "format": 0.5})
    folder.load()
    folder.set("paper", "stages/grpo/rewards", {"positon": 1.0})
    with pytest.raises(UserError, match=r'rewards\.positon: unknown reward; did you mean "position"'):
        folder.load()
