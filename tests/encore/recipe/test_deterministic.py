"""The key `deterministic` is part of what a stage or an evaluation is made from."""

from encore.recipe.graph import Graph, Node

STAGE, EVALUATION = (Node("paper", "cpu", "hot", 0, *of) for of in (("grpo", "stage"), ("after", "eval")))


def test_a_result_that_repeats_is_another_result(folder):
    plain = Graph(folder.load())
    folder.set("paper", "evals/deterministic", True)
    measured = Graph(folder.load())
    assert measured.config(EVALUATION) == plain.config(EVALUATION) | {"deterministic": True}
    assert measured.lineage(EVALUATION) != plain.lineage(EVALUATION)
    assert measured.lineage(STAGE) == plain.lineage(STAGE)
    folder.set("paper", "stages/grpo/deterministic", True)
    assert Graph(folder.load()).lineage(STAGE) != plain.lineage(STAGE)
