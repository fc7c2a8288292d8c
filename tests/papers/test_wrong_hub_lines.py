"""What a `gpu` recipe says wrongly of the Hub ends its job before any training, with a line that says what.

So the Hub of test_gpu_stand_ins.py shows that the lines of the recipes, as they stand, name what is there.
"""

import pytest
import stand_in_recipes
from forked_jobs import forked
from papers import RECIPES
from stand_in_recipes import MACHINE
from stocked_hub import stocked

from encore.forecast import trial

ABSENT = "d" * 40
NO_REVISION = f"the Hub has no revision {ABSENT} of"
MATH, HH = "DigitalLearningGmbH/MATH-lighteval", "Anthropic/hh-rlhf"


@pytest.fixture(scope="module", autouse=True)
def hub(tmp_path_factory):
    with stocked(tmp_path_factory.mktemp("hub")) as served:
        yield served


def node_of(recipe, name):
    """The graph of a recipe at scale `gpu`, and the node of this name in its first arm."""
    graph = stand_in_recipes.graph([stand_in_recipes.only(RECIPES[recipe], "gpu")])
    nodes = graph.grid(recipe, "gpu", RECIPES[recipe].arms("gpu")[:1], [0])
    return graph, next(node for node in nodes if node.name == name)


def altered(config, line, written):
    """The config with something else on a line, `model.revision`."""
    *groups, key = line.split(".")
    place = config
    for group in groups:
        place = place[group]
    assert place.get(key) != written
    place[key] = written
    return config


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "name", "line", "written", "told"),
    [
        ("r1_zero", "grpo", "model.hub", "Qwen/Qwen2.5-05B", "the Hub has no model Qwen/Qwen2.5-05B"),
        ("r1_zero", "grpo", "model.revision", ABSENT, f"{NO_REVISION} Qwen/Qwen2.5-0.5B"),
        ("r1_zero", "grpo", "task.hub", "org/MATH", "the Hub has no data set org/MATH"),
        ("r1_zero", "grpo", "task.revision", ABSENT, f"{NO_REVISION} {MATH}"),
        ("r1_zero", "grpo", "task.subset", "defualt", "defualt"),
        ("r1_zero", "grpo", "task.split", "tarin", "tarin"),
        ("r1_zero", "grpo", "task.question", "porblem", f"task.question: no column 'porblem' in {MATH}"),
        ("dpo", "label_best", "task.revision", ABSENT, f"{NO_REVISION} {HH}"),
        ("dpo", "label_best", "task.subset", "helpful", "helpful"),
        ("dpo", "label_best", "task.split", "test[2312:8553]", "8553 rows asked, but test has 8552"),
        ("dpo", "label_best", "task.chosen", "choosen", f"task.chosen: no column 'choosen' in {HH}"),
    ],
)
def test_a_stage_says_what_is_wrong(recipe, name, line, written, told, tmp_path):
    graph, node = node_of(recipe, name)
    config = altered(graph.config(node), line, written)
    done = trial.run_stage(config, {}, 0, MACHINE, (name, tmp_path), forked())
    assert told in done.failure, done.failure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "written", "told"),
    [
        ("tasks.gsm8k.task.revision", ABSENT, f"{NO_REVISION} openai/gsm8k"),
        ("tasks.math500.task.split", "train", "train"),
        ("tasks.math500-greedy.task.answer", "solutoin", "no column 'solutoin' in HuggingFaceH4/MATH-500"),
    ],
)
def test_an_evaluation_says_what_is_wrong(line, written, told, tmp_path):
    graph, node = node_of("r1_zero", "before")
    config = altered(graph.config(node) | {"seed": 0}, line, written)
    model = f"hub:{graph.model_of(node).model_dump_json()}"
    done = trial.run_evaluation(config, model, {}, 0, ("before", tmp_path), forked())
    assert told in done.failure, done.failure
