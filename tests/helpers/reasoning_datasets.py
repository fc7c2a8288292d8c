"""Small copies of data sets of reasoning that no recipe names: as in hub_datasets, with none of the text.

From their cards on the Hub; PRM800K from the README of its repository, whose files are JSON lines.
"""

from typing import Any

from data_set_files import TURNS, Shape, turns
from hub_datasets import ANSWERS, DIALOGUES

SPOKEN = [{"from": "str", "value": "str"}]  # turns as ShareGPT has them
PRM800K = {
    "labeler": "a",
    "generation": 8,
    "question": {"problem": "What is 3+4?", "ground_truth_answer": "7"},
    "label": {"steps": [{"completions": [{"text": "3+4=7", "rating": 1}], "chosen_completion": 0}]},
}


def of_subset(name: str) -> dict[str, list[str]]:
    return {split: [f"{name}/{split}-00000-of-00001.parquet"] for split in ("train", "test")}


def spoken(*texts: str) -> list[dict[str, Any]]:
    return [{"from": ("user", "assistant")[i % 2], "value": text} for i, text in enumerate(texts)]


STEPS = [
    {"prompt": "What is 3+4?", "completions": ["I add 3 and 4.", "That is 7."], "labels": [True, True]},
    {"prompt": "What is 3*4?", "completions": ["I add 3 and 4."], "labels": [False]},
]
STEPWISE = {"prompt": "str", "completions": ["str"], "labels": ["bool"]}

DATASETS = {
    "openai/gsm8k": Shape(
        "e53f048856ff4f594e959d75785d2c2d37b678ee",
        {"question": "str", "answer": "str"},
        [
            {"question": "She has 3 eggs and 4 hens. How many are they?", "answer": "3+4=<<3+4=7>>7\n#### 7"},
            {"question": "It costs $1,200 more. How much?", "answer": "It is $1,200\n#### 1,200"},
        ],
        ("train", "test"),
        subsets=("main",),
        files=of_subset("main"),
    ),
    "BytedTsinghua-SIA/DAPO-Math-17k": Shape(
        "",
        {
            "data_source": "str",
            "prompt": TURNS,
            "ability": "str",
            "reward_model": {"ground_truth": "str", "style": "str"},
            "extra_info": {"index": "str"},
        },
        [
            {"data_source": "math_dapo", "prompt": turns(question), "ability": "MATH"}
            | {"reward_model": {"ground_truth": answer, "style": "rule"}, "extra_info": {"index": "0"}}
            for question, answer in ANSWERS
        ],
        ("train",),
    ),
    "trl-lib/prm800k": Shape("82f00e1a1b3b474e895b856d32e6e38c9f58e440", STEPWISE, STEPS, ("train", "test")),
    "plaguss/prm_800k_trl": Shape(
        "21cab64fb65eb684d81fbf368f5133efcf291f69",
        STEPWISE | {"index": "int"},
        [row | {"index": i} for i, row in enumerate(STEPS)],
        ("train", "test"),
    ),
    "KbsdJames/Omni-MATH": Shape(
        "0000b6bc8be4aa61655413073c3645ae4b3b30e8",
        {
            "domain": ["str"],
            "difficulty": "float",
            "problem": "str",
            "solution": "str",
            "answer": "str",
            "source": "str",
        },
        [
            {"domain": ["Algebra"], "difficulty": 8.0, "problem": question, "solution": f"It is {answer}."}
            | {"answer": answer, "source": "imo"}
            for question, answer in ANSWERS
        ],
        ("test",),
        files={"test": ["test.jsonl"]},
    ),
    "math-ai/aime25": Shape(
        "",
        {"problem": "str", "answer": "str", "id": "str"},
        [{"problem": question, "answer": answer, "id": "0"} for question, answer in ANSWERS],
        ("test",),
    ),
    "knoveleng/open-rs": Shape(
        "8de2b2d11162d97b45c7606902eae2bb1ff629b4",
        {"problem": "str", "solution": "str", "answer": "str", "level": "str"},
        [
            {"problem": question, "solution": f"\\boxed{{{answer}}}", "answer": answer, "level": "Hard"}
            for question, answer in ANSWERS
        ],
        ("train",),
    ),
    "Jiayi-Pan/Countdown-Tasks-3to4": Shape(
        "408f70d177020686d34a56bba5952feb45aaaee4",
        {"target": "int", "nums": ["int"]},
        [{"target": 98, "nums": [44, 19, 35]}, {"target": 24, "nums": [8, 8, 3, 3]}],
        ("train",),
    ),
    "open-thoughts/OpenThoughts-114k": Shape(
        "",
        {"system": "str", "conversations": SPOKEN},
        [
            {"system": "You explore.", "conversations": spoken(question, f"<think>a</think> {answer}")}
            for question, answer in ANSWERS
        ],
        ("train",),
    ),
    "HuggingFaceH4/ultrachat_200k": Shape(
        "",
        {"prompt": "str", "prompt_id": "str", "messages": TURNS},
        [
            {"prompt": first, "prompt_id": "0", "messages": turns(first, reply, second, last)}
            for first, reply, second, last, _ in DIALOGUES[:1]
        ]
        + [
            {"prompt": first, "prompt_id": "1", "messages": turns(first, reply)}
            for first, reply, *_ in DIALOGUES[1:]
        ],
        ("train_sft", "test_sft", "train_gen", "test_gen"),
    ),
}
