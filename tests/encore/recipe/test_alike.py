"""A scale that is like another one, and an arm that a scale does without."""

import pytest

from encore.recipe.graph import Graph, Node

SMALL = {"like": "cpu", "about": "small, on a GPU"}


def config(folder, scale, arm="base-recipe"):
    return Graph(folder.load()).config(Node("paper", scale, arm, 0, "grpo", "stage"))


@pytest.fixture
def like(folder):
    """The recipe with a scale `gpu` that is like `cpu`."""
    folder.set("paper", "scales/gpu", dict(SMALL))
    folder.set("tiny", "scales/gpu", {"about": "larger"})
    return folder


def test_it_has_the_layers_of_the_other_and_over_them_its_own(like):
    like.set("paper", "scales/cpu/stages", {"grpo": {"args": {"beta": 0.5, "max_completion_length": 32}}})
    like.set("paper", "scales/cpu/arms", {"hot": {"stages": {"grpo": {"args": {"epsilon": 0.3}}}}})
    assert config(like, "gpu") == config(like, "cpu")
    like.set("paper", "scales/gpu/stages", {"grpo": {"args": {"beta": 0.1}}})
    like.set("paper", "scales/gpu/arms", {"hot": {"stages": {"grpo": {"args": {"top_p": 0.9}}}}})
    given = config(like, "gpu", "hot")["args"]
    assert [given[name] for name in ("beta", "max_completion_length", "epsilon", "top_p", "temperature")] == [
        0.1,
        32,
        0.3,
        0.9,
        1.2,
    ]


def test_null_takes_away_what_the_other_has_and_what_every_scale_has(like):
    like.set(
        "paper", "scales/cpu/stages", {"grpo": {"args": {"seed": None, "cache_implementation": "static"}}}
    )
    like.remove("paper", "scales/cpu/stages/grpo/args/seed")
    like.set("paper", "scales/gpu/stages", {"grpo": {"args": {"cache_implementation": None}, "task": None}})
    like.set("paper", "scales/gpu/stages/grpo/domains", {"sums": {"share": 1}})
    assert "cache_implementation" in config_of(like, "cpu")["args"]
    assert "cache_implementation" not in config_of(like, "gpu")["args"]
    assert "task" not in config_of(like, "gpu")


def config_of(folder, scale):
    """The stage as its layers come to, whether they make sense or not."""
    from encore.recipe.layers import Layers

    return Layers(folder.specs["paper"]).merged(scale, "base-recipe", "stages")["grpo"]


def test_it_has_the_arms_claims_numbers_and_seeds_of_the_other(like):
    claim = like.specs["paper"]["claims"]["lifts"]
    number = {"what": "x", "value": 1.0, "source": "y", "scales": ["paper", "cpu"]}
    like.set("paper", "claims", {"small": claim | {"scales": ["cpu"]}, "all": claim})
    like.set("paper", "published", [number])
    like.set("paper", "scales/cpu/seeds", 2)
    recipe = like.load()["paper"]
    assert recipe.arms("gpu") == recipe.arms("cpu") == ["base-recipe", "hot", "only-cpu"]
    assert [claim.scales for claim in recipe.document.claims.values()] == [("cpu", "gpu"), None]
    assert recipe.document.published[0].scales == ("paper", "cpu", "gpu")
    assert recipe.selection("gpu", "report", None)[1] == [0, 1]
    like.set("paper", "scales/gpu/seeds", 1)
    assert like.load()["paper"].selection("gpu", "report", None)[1] == [0]


def test_an_arm_that_it_sets_to_null_takes_its_claims_and_numbers_along(like):
    claim = like.specs["paper"]["claims"]["lifts"] | {"scales": ["cpu"]}
    test = claim["test"] | {"of": "hot/after", "against": None}
    hot = claim | {"test": {key: value for key, value in test.items() if value is not None}}
    number = {"what": "x", "value": 1.0, "source": "y", "scales": ["cpu"], "metric": test["metric"]}
    like.set("paper", "claims", {"lifts": claim, "hot": hot})
    like.set("paper", "published", [number | {"at": "hot/after"}])
    assert [*like.load()["paper"].document.claims["hot"].scales] == ["cpu", "gpu"]
    like.set("paper", "scales/gpu/arms", {"hot": None})
    recipe = like.load()["paper"]
    assert {name: claim.scales for name, claim in recipe.document.claims.items()} == {
        "lifts": ("cpu", "gpu"),
        "hot": ("cpu",),
    }
    assert recipe.document.published[0].scales == ("cpu",)
    like.set("paper", "scales/paper/like", "gpu")  # which lacks the arm by gpu's word
    recipe = like.load()["paper"]
    assert recipe.document.claims["hot"].scales == ("cpu",)
    assert recipe.document.claims["lifts"].scales == ("cpu", "paper", "gpu")


def test_it_may_be_like_one_that_is_like_a_third(like):
    like.set("paper", "scales/paper/like", "gpu")
    like.set("paper", "scales/gpu/arms", {"hot": None})
    like.set("paper", "scales/cpu/seeds", 2)
    recipe = like.load()["paper"]
    assert recipe.arms("paper") == recipe.arms("gpu") == ["base-recipe", "only-cpu"]
    assert recipe.selection("paper", "report", None)[1] == [0, 1]
    graph = Graph(like.load())
    nodes = [Node("paper", scale, "base-recipe", 0, "grpo", "stage") for scale in ("paper", "gpu")]
    assert graph.config(nodes[0])["args"] == graph.config(nodes[1])["args"]


def test_what_it_needs_of_another_recipe_is_of_its_own_scale(like):
    like.set("tiny", "scales/gpu/stages", {"pretrain": {"model": {"hidden_size": 128}}})
    graph = Graph(like.load())
    (source,) = graph.inputs(Node("paper", "gpu", "base-recipe", 0, "grpo", "stage")).values()
    assert (source.scale, graph.config(source)["model"]["hidden_size"]) == ("gpu", 128)


def test_nothing_of_the_other_changes(folder, like):
    graph = Graph(like.load())
    node = Node("paper", "cpu", "hot", 0, "grpo", "stage")
    folder.remove("paper", "scales/gpu")
    assert graph.lineage(node) == Graph(folder.load()).lineage(node)


@pytest.mark.parametrize(
    ("scale", "other", "message"),
    [
        ("gpu", "cqu", 'scales.gpu.like: unknown other scale "cqu"; did you mean "cpu"?'),
        ("gpu", "gpu", 'scales.gpu.like: unknown other scale "gpu"'),
        ("cpu", "gpu", "scales.cpu.like: cpu is like gpu is like cpu: they go in a circle"),
    ],
)
def test_it_is_like_another_one_that_says_itself_what_it_is(like, scale, other, message):
    like.set("paper", f"scales/{scale}/like", other)
    assert message in like.mistake()


def test_a_fourth_primary_claim_by_likeness_is_refused(like):
    claim = like.specs["paper"]["claims"]["lifts"] | {"primary": True}
    claims = {f"c{i}": claim | {"scales": ["cpu"]} for i in range(3)}
    like.set("paper", "claims", claims | {"own": claim | {"scales": ["gpu"]}})
    assert "a fourth primary claim at scale gpu" in like.mistake()


def test_a_scale_does_without_an_arm(folder):
    folder.set("paper", "scales/cpu/arms", {"hot": None})
    recipe = folder.load()["paper"]
    assert recipe.arms("cpu") == ["base-recipe", "only-cpu"]
    assert recipe.arms("paper") == ["base-recipe", "hot"]
    folder.set("paper", "scales/cpu/arms", {"hott": None})
    assert 'scales.cpu.arms.hott: unknown arm at scale cpu; did you mean "hot"?' in folder.mistake()


def test_one_that_is_like_it_does_without_the_arm_too_or_has_it_back(like):
    like.set("paper", "scales/cpu/arms", {"hot": None})
    assert like.load()["paper"].arms("gpu") == ["base-recipe", "only-cpu"]
    like.set("paper", "scales/gpu/arms", {"hot": {"stages": {}}})
    assert like.load()["paper"].arms("gpu") == ["base-recipe", "hot", "only-cpu"]


def test_a_scale_that_is_there_needs_no_reason_why_it_is_not(folder):
    folder.set("paper", "without", {"cpu": "it needs a GPU"})
    assert "without.cpu: the recipe has this scale; remove one of the two" in folder.mistake()
