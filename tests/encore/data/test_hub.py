"""Hub datasets and models of recipes: at their pins, with such splits and columns, read by the loaders."""

from collections.abc import Iterator
from typing import Any

import code_datasets
import hub_datasets
import pytest
import reasoning_datasets
import typed
from data_set_files import write
from papers import GRAPH, RECIPES

from encore.data import columns as named_columns
from encore.data import demonstrations, hub_preferences, preferences, prompts, step_labels
from encore.data.forms import plain
from encore.data.hub import load
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
MODELS = {  # those with safetensors at this revision, for nothing else is loaded
    "EleutherAI/pythia-1b-deduped": "7199d8fc61a6d565cd1f3c62bf11525b563e13b2",
    "EleutherAI/pythia-2.8b-deduped": "04c6993bdebe728d5ad1dae3a916eaa766166783",
    "EleutherAI/pythia-6.9b-deduped": "d7e0e8080e3935fff58cb35d13fdaab0b2da9f30",
    "EleutherAI/pythia-70m": "a39f36b100fe8a5377810d56c3f4789b9c53ac42",
    "EleutherAI/pythia-160m": "50f5173d932e8e61f858120bcb800b97af589f46",
    "EleutherAI/pythia-410m": "9879c9b5f8bea9051dcb0e68dff21493d67e9d4f",
    "EleutherAI/pythia-1.4b": "fedc38a16eea3bd36a96b906d78d11d2ce18ed79",
    "EleutherAI/pythia-2.8b": "2a259cdd96a4beb1cdf467512e3904197345f6a9",
    "EleutherAI/pythia-6.9b": "c0e3eee36dc47af0c49f361c74cfe459c09f7f23",
    "Qwen/Qwen2.5-0.5B": "060db6499f32faf8b98477b0a26969ef7d8b9987",
    "Qwen/Qwen2.5-0.5B-Instruct": "7ae557604adf67be50417f59c2c2f167def9a775",
    "Qwen/Qwen2.5-3B": "3aab1f1954e9cc14eb9509a215f9e5ca08227a9b",
    "Qwen/Qwen2.5-3B-Instruct": "aa8e72537993ba99e69dfaafa59ed015b17504d1",
    "Qwen/Qwen2.5-1.5B": "8faed761d45a263340a0528343f099c05c9a4323",
    "Qwen/Qwen2.5-1.5B-Instruct": "989aa7980e4cf806f80c7fef2b1adb7bc71aa306",
    "Qwen/Qwen2.5-7B": "d149729398750b98c0af14eb82c78cfe92750796",
    "Qwen/Qwen2.5-7B-Instruct": "a09a35458c702b33eeacc393d103063234e8bc28",
    "Qwen/Qwen2.5-14B": "97e1e76335b7017d8f67c08a19d103c0504298c9",
    "Qwen/Qwen2.5-32B": "1818d35814b8319459f4bd55ed1ac8709630f003",
    "Qwen/Qwen2.5-32B-Instruct": "5ede1c97bbab6ce5cda5812749b4c0bdf79b18dd",
    "Qwen/Qwen2.5-Math-1.5B": "4a83ca6e4526a4f2da3aa259ec36c259f66b2ab2",
    "Qwen/Qwen2.5-Math-7B": "b101308fe89651ea5ce025f25317fea6fc07e96e",
    "Qwen/Qwen3-1.7B-Base": "ea980cb0a6c2ae4b936e82123acc929f1cec04c1",
    "Qwen/Qwen3-4B-Base": "906bfd4b4dc7f14ee4320094d8b41684abff8539",
    "Qwen/Qwen3-30B-A3B-Base": "1b75feb79f60b8dc6c5bc769a898c206a1c6a4f9",
    "RLHFlow/LLaMA3-SFT": "1bedbf1899806bf585bd8d0833541d28af017dce",
    "deepseek-ai/DeepSeek-V3-Base": "afb92e1fa402c2be2a9eb085312bb02e0384d6c7",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": "ad9f0ae0864d7fbcd1cd905e3c6c5b069cc8b562",
    "deepseek-ai/deepseek-math-7b-instruct": "0a5828f800a36df0fd7f0ed581b983246c0677ff",
}


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
    assert models <= set(MODELS.items())


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
