"""Hub datasets and models of recipes: at their pins, with such splits and columns, read by the loaders."""

from collections.abc import Iterator
from typing import Any

import code_datasets
import hub_datasets
import hub_models
import pytest
import reasoning_datasets
import typed
from data_set_files import write
from papers import GRAPH, RECIPES

from encore.data import columns as named_columns
from encore.data import demonstrations, hub_preferences, preferences, prompts, step_labels
from encore.data.forms import plain
from encore.data.hub import load
from encore.errors import UserError
from encore.recipe.graph import Node
from encore.recipe.kinds.ppo import HubDocuments

NAMED = (
    "question",
    "answer",
    "prompt",
    "completion",
    "chosen",
    "rejected",
    "responses",
)  # keys that name columns
DATASETS = hub_datasets.DATASETS | reasoning_datasets.DATASETS | code_datasets.DATASETS


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """task -> the same task with the small copy of its dataset; the user's cache is left alone."""
    import datasets

    folder, written = tmp_path_factory.mktemp("hub"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
        datasets.disable_progress_bars()

        def copy(task: dict[str, Any]) -> dict[str, Any]:
            name = task["hub"]
            written[name] = written.get(name) or write(name, DATASETS[name], folder)
            return {**task, "hub": str(written[name]), "split": whole(task["split"])}

        yield copy


def whole(split: str) -> str:
    """The split of which `split` may be a slice."""
    return split.partition("[")[0]


def pinned(name: str, split: str, **columns: str) -> dict[str, Any]:
    return {"hub": name, "revision": hub_datasets.DATASETS[name].revision, "split": split, **columns}


def parts(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each dict within that names something of the Hub, with its place."""
    if isinstance(value, dict):
        if "hub" in value:
            yield path, value
        for key, part in value.items():
            yield from parts(part, f"{path}.{key}")


def of_recipes() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(place, what is named, the whole stage or evaluation) for every recipe, scale and arm."""
    for name, recipe in RECIPES.items():
        for scale in recipe.scales:
            for arm in recipe.arms(scale):
                nodes = [(stage, "stage") for stage in recipe.stages(scale, arm)]
                nodes += [(checkpoint, "eval") for checkpoint in recipe.checkpoints(scale, arm)]
                for node, kind in nodes:
                    config = GRAPH.config(Node(name, scale, arm, 0, node, kind))
                    for path, named in parts(config):
                        yield f"{name}/{scale}/{arm}/{node}{path}", named, config


OF_RECIPES = [*of_recipes()]


def test_every_dataset_of_a_recipe_is_at_its_pin_with_the_split_and_the_columns():
    tasks = [(place, task) for place, task, _ in OF_RECIPES if "split" in task]
    assert tasks
    for place, task in tasks:
        shape = DATASETS[task["hub"]]
        assert task["revision"] == shape.revision, place
        assert whole(task["split"]) in shape.splits, place
        assert task.get("subset") in (shape.subsets or (None,)), place
        named = NAMED if "responses" in task else (*NAMED, "text")  # of responses, text is a field of theirs
        columns = {name for key in named if key in task for name in named_columns.names(task[key])}
        assert columns <= set(shape.columns), place


def test_every_model_of_a_recipe_is_at_its_pin():
    models = {(named["hub"], named["revision"]) for _, named, _ in OF_RECIPES if "split" not in named}
    assert models
    assert models <= set(hub_models.REVISIONS.items())


@pytest.mark.slow
def test_our_loaders_read_every_dataset_of_a_recipe(hub):
    """By the loader of the stage that names it, in its template."""
    seen = set()
    for place, task, config in OF_RECIPES:
        key = repr((sorted(task.items()), config.get("run"), config.get("template")))
        if "split" not in task or key in seen:
            continue
        seen.add(key)
        template, copied = config.get("template", "{question}"), hub(task)
        if "chosen" in task or "responses" in task:
            rows, _ = preferences.usable(hub_preferences.of_task(typed.comparisons(copied), template))
        elif "labels" in task:
            rows = step_labels.of_task(typed.steps(copied), template)
        elif "completion" in task:  # of a stage `sft`, or those that a reward model's mean is of
            owners = [config, config.get("demonstrations", {}), *config.get("also", {}).values()]
            owner = next(one for one in owners if one.get("task") == task)
            rows = demonstrations.of_task(typed.source({**owner, "task": copied, "problems": None}), 0)
        elif "question" in task:
            rows = prompts.of_task(typed.task(copied), plain(template), None, 0).to_list()
        else:
            rows = [{"prompt": row[task["text"]]} for row in load(typed.task(copied, HubDocuments), ["text"])]
        assert len(rows) >= 2, place
        assert all(row["prompt"].strip() for row in rows), place


@pytest.mark.parametrize(
    ("name", "columns", "prompt", "responses"),
    [
        (
            "trl-internal-testing/tldr-preference-trl-style",
            {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"},
            hub_datasets.POSTS[0],
            list(hub_datasets.SUMMARIES[0]),
        ),
        (
            "CarperAI/openai_summarize_comparisons",
            {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"},
            hub_datasets.POSTS[0],
            [f"TL;DR:  {text}" for text in hub_datasets.SUMMARIES[0]],
        ),
        (
            "Anthropic/hh-rlhf",
            {"chosen": "chosen", "rejected": "rejected"},
            "\n\nHuman: Which tea?\n\nAssistant: Green or black?\n\nHuman: Green.\n\nAssistant:",
            [" Try a light one.", " I do not know."],
        ),
        (
            "HuggingFaceH4/ultrafeedback_binarized",
            {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected"},
            "Which tea?",
            [" Try a light one.", " I do not know."],
        ),
        (
            "berkeley-nest/Nectar",
            {"prompt": "prompt", "responses": "answers", "text": "answer", "rank": "rank"},
            "\n\nHuman: Which tea?\n\nAssistant:",
            [f" Try a light one. {k}" for k in range(1, 8)],
        ),
    ],
)
def test_preferences_of_the_hub_best_first(hub, name, columns, prompt, responses):
    split = hub_datasets.DATASETS[name].splits[0]
    rows = hub_preferences.of_task(typed.comparisons(hub(pinned(name, split, **columns))))
    first = rows[0]
    assert first["prompt"] == prompt
    assert [first["responses"][i] for i in first["ranking"]] == responses
    found = preferences.pairs(rows[:1])
    assert len(found) == len(responses) * (len(responses) - 1) // 2
    assert all(pair["margin"] > 0 for pair in found)
    kept, counts = preferences.usable(rows)
    assert len(kept) == len(rows)
    assert not any(counts.values())


def sliced(hub, split):
    """A task of three rows in each split, of which `split` takes a slice."""
    return typed.task({**hub(pinned("trl-lib/tldr", split)), "split": split, "question": "prompt"})


@pytest.mark.parametrize(
    ("split", "count"), [("test[1:3]", 2), ("test[-3:]", 3), ("test[:34%]", 1), ("test[:1]+train[2:]", 2)]
)
def test_a_slice_has_the_rows_that_it_names(hub, split, count):
    assert len(load(sliced(hub, split), ["question"])) == count


@pytest.mark.parametrize(("split", "asked"), [("test[1:4]", 4), ("test[-4:]", 4), ("train[:1]+test[:9]", 9)])
def test_a_slice_that_names_more_rows_is_refused(hub, split, asked):
    with pytest.raises(UserError, match=rf"task\.split: .*: {asked} rows asked, but test has 3"):
        load(sliced(hub, split), ["question"])


@pytest.mark.parametrize(
    ("name", "split", "columns", "completion"),
    [
        ("trl-lib/tldr", "train", ("prompt", "completion"), " Cat climbs the roof, needs help."),
        (
            "trl-internal-testing/tldr-preference-sft-trl-style",
            "validation",
            ("prompt", "summary"),
            "Cat climbs the roof, needs help.",
        ),
        ("HuggingFaceH4/no_robots", "train", ("prompt", "messages"), " Try a light one."),
        ("HuggingFaceH4/ultrafeedback_binarized", "train_sft", ("prompt", "messages"), " Try a light one."),
    ],
)
def test_demonstrations_of_the_hub(hub, name, split, columns, completion):
    task = hub(pinned(name, split, prompt=columns[0], completion=columns[1]))
    rows = demonstrations.of_task(typed.source({"task": task, "template": "<{question}>"}), 0)
    assert len(rows) == 3
    first = hub_datasets.DATASETS[name].rows[0]["prompt"]
    assert rows[0] == {"prompt": f"<{first}>", "completion": completion, "question": first}
