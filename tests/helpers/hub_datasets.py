"""Small copies of Hub datasets that recipes name: columns, types, splits and file layout, none of the text.

`write(name, folder)` writes one as it lies on the Hub at the revision that the recipes pin.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]
TURNS = [{"content": "str", "role": "str"}]


@dataclass(frozen=True)
class Shape:
    """`columns`: name -> "str", "int", "float", "bool", a list of one such, or a struct of them.

    `files`: where a split lies, if not in data/<split>-00000-of-00001.parquet; one file of rows each.
    `subsets`: those that recipes name, each in a folder of its name, `default` in data.
    """

    revision: str
    columns: Mapping[str, Any]
    rows: Sequence[Row]
    splits: Sequence[str]
    subsets: Sequence[str] = ()
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)


def turns(*texts: str) -> list[Row]:
    return [{"content": text, "role": ("user", "assistant")[i % 2]} for i, text in enumerate(texts)]


POST = "SUBREDDIT: r/{0}\n\nTITLE: {1}\n\nPOST: {2}\n\nTL;DR:"
POSTS = [
    POST.format("pets", "A cat on the roof", "My cat climbs the roof each night.\nIt cannot get down alone."),
    POST.format("bread", "Flat loaves", "My loaves stay flat, whatever flour I use."),
    POST.format("trains", "A late train", "The train is late each Monday, so I am late too."),
]
SUMMARIES = [
    ("Cat climbs the roof, needs help.", "A cat."),
    ("Bread stays flat with any flour.", "Bread is flat and flat."),
    ("Train late on Mondays.", "I am late."),
]
ASKED = "\n\nHuman: {0}\n\nAssistant: {1}\n\nHuman: {2}\n\nAssistant:"
DIALOGUES = [
    ("Which tea?", "Green or black?", "Green.", " Try a light one.", " I do not know."),
    ("How do I knit?", "With two needles.", "And then?", " Cast on twenty.", " And then you knit."),
    ("Is it late?", "A little.", "What time is it?", " I cannot see a clock.", " Go away."),
]
ANSWERS = [("What is 2+2?", "4"), ("What is 3+4?", "7"), (r"Find \(x\) if \(x-1=0\).", "1")]


def _comparisons() -> list[Row]:
    return [
        {
            "prompt": post,
            "chosen": turns(post, good),
            "rejected": turns(post, bad),
            "info": {
                "id": f"t{i}",
                "post": post,
                "title": "t",
                "subreddit": "s",
                "site": None,
                "article": None,
            },
            "summaries": [{"text": text, "policy": "sup1", "note": None} for text in (good, bad)],
            "choice": 0,
            "worker": "w",
            "batch": "batch3",
            "split": "train",
            "extra": {"confidence": None},
        }
        for i, (post, (good, bad)) in enumerate(zip(POSTS, SUMMARIES, strict=True))
    ]


def _dialogues() -> list[Row]:
    found = []
    for first, reply, second, good, bad in DIALOGUES:
        before = ASKED.format(first, reply, second)
        found.append({"chosen": before + good, "rejected": before + bad})
    return found


def _feedback() -> list[Row]:
    return [
        {
            "prompt": first,
            "prompt_id": str(i),
            "chosen": turns(first, good),
            "rejected": turns(first, bad),
            "messages": turns(first, good),
            "score_chosen": 8.5,
            "score_rejected": 8.5 if i == 1 else 4.0,  # the Hub's has such rows too
        }
        for i, (first, _, _, good, bad) in enumerate(DIALOGUES)
    ]


def _ranked() -> list[Row]:
    return [
        {
            "prompt": f"\n\nHuman: {first}\n\nAssistant: ",
            "answers": [
                {"answer": f"{good} {k}", "model": f"m{k}", "rank": float(k)} for k in (3, 1, 2, 5, 4, 7, 6)
            ],
            "turns": 1,
            "num_responses": 7,
            "source": ["sharegpt"],
            "good_natured": True,
        }
        for first, _, _, good, _ in DIALOGUES
    ]


MATHS = {"problem": "str", "solution": "str", "answer": "str"}
DATASETS = {
    "trl-internal-testing/tldr-preference-trl-style": Shape(
        "dbc4f3ac9e0f9849b55e1ea7a65bfd7d64e4709b",
        {
            "prompt": "str",
            "chosen": TURNS,
            "rejected": TURNS,
            "info": dict.fromkeys(("id", "post", "title", "subreddit", "site", "article"), "str"),
            "summaries": [dict.fromkeys(("text", "policy", "note"), "str")],
            "choice": "int",
            "worker": "str",
            "batch": "str",
            "split": "str",
            "extra": {"confidence": "int"},
        },
        _comparisons(),
        ("train", "validation", "validation_cnndm"),
    ),
    "trl-internal-testing/tldr-preference-sft-trl-style": Shape(
        "462bcbf9c2eb9d30b4a029c1ed561710a571398c",
        {"prompt": "str", "messages": TURNS}
        | dict.fromkeys(("id", "subreddit", "title", "post", "summary"), "str"),
        [
            {"prompt": post, "messages": turns(post, good), "id": "t", "subreddit": "s", "title": "t"}
            | {"post": post, "summary": good}
            for post, (good, _) in zip(POSTS, SUMMARIES, strict=True)
        ],
        ("train", "validation", "test"),
    ),
    "trl-lib/tldr": Shape(
        "21233da376667088e6eb1ce4ce19ed832c2935d3",
        {"prompt": "str", "completion": "str"},
        [
            {"prompt": post, "completion": f" {good}"}
            for post, (good, _) in zip(POSTS, SUMMARIES, strict=True)
        ],
        ("train", "validation", "test"),
    ),
    "CarperAI/openai_summarize_comparisons": Shape(
        "a320fae2cd84f04610a1b57ac83c2a2f674b8bcd",
        {"prompt": "str", "chosen": "str", "rejected": "str"},
        [
            {"prompt": post, "chosen": f"TL;DR:  {good}", "rejected": f"TL;DR:  {bad}"}
            for post, (good, bad) in zip(POSTS, SUMMARIES, strict=True)
        ],
        ("train", "test", "valid1", "valid2"),
    ),
    "Anthropic/hh-rlhf": Shape(
        "09be8c5bbc57cb3887f3a9732ad6aa7ec602a1fa",
        {"chosen": "str", "rejected": "str"},
        _dialogues(),
        ("train", "test"),
        files={
            split: [
                f"{part}/{split}.jsonl.gz"
                for part in ("harmless-base", "helpful-base", "helpful-online", "helpful-rejection-sampled")
            ]
            for split in ("train", "test")
        },
    ),
    "HuggingFaceH4/ultrafeedback_binarized": Shape(
        "3949bf5f8c17c394422ccfab0c31ea9c20bdeb85",
        {
            "prompt": "str",
            "prompt_id": "str",
            "chosen": TURNS,
            "rejected": TURNS,
            "messages": TURNS,
            "score_chosen": "float",
            "score_rejected": "float",
        },
        _feedback(),
        ("train_prefs", "train_sft", "train_gen", "test_prefs", "test_sft", "test_gen"),
    ),
    "berkeley-nest/Nectar": Shape(
        "3c6b4c47fa1cc38869f9f32dce1699f7abad8b06",
        {
            "prompt": "str",
            "answers": [{"answer": "str", "model": "str", "rank": "float"}],
            "turns": "int",
            "num_responses": "int",
            "source": ["str"],
            "good_natured": "bool",
        },
        _ranked(),
        ("train",),
    ),
    "HuggingFaceH4/no_robots": Shape(
        "e6f9a4ac5c37faeb744ba9ecf0473184d7f8105b",
        {"prompt": "str", "prompt_id": "str", "messages": TURNS, "category": "str"},
        [
            {"prompt": first, "prompt_id": str(i), "messages": turns(first, good), "category": "Open QA"}
            for i, (first, _, _, good, _) in enumerate(DIALOGUES)
        ],
        ("train", "test"),
    ),
    "NeelNanda/pile-10k": Shape(
        "127bfedcd5047750df5ccf3a12979a47bfa0bafa",
        {"text": "str", "meta": {"pile_set_name": "str"}},
        [{"text": post, "meta": {"pile_set_name": "Pile-CC"}} for post in POSTS],
        ("train",),
    ),
    "open-r1/DAPO-Math-17k-Processed": Shape(
        "31dd309567e3da778038cc87d868b6097a3ccf68",
        {
            "prompt": "str",
            "solution": "str",
            "data_source": "str",
            "source_prompt": TURNS,
            "ability": "str",
            "reward_model": {"ground_truth": "str", "style": "str"},
            "extra_info": {"index": "str"},
        },
        [
            {"prompt": question, "solution": answer, "data_source": "math_dapo"}
            | {"source_prompt": turns(question), "ability": "MATH", "extra_info": {"index": "0"}}
            | {"reward_model": {"ground_truth": answer, "style": "rule-lighteval/MATH_v2"}}
            for question, answer in ANSWERS
        ],
        ("train",),
        subsets=("en",),
        files={"train": ["en/train-00000-of-00001.parquet"]},
    ),
    "open-r1/Mixture-of-Thoughts": Shape(
        "e55fa28006c0d0ec60fb3547520f775dd42d02cd",
        {"messages": TURNS, "num_tokens": "int", "source": "str"},
        [
            {"messages": turns(question, f"<think>\nOne moment.\n</think>\n\n\\boxed{{{answer}}}")}
            | {"num_tokens": 12, "source": "open-r1/OpenR1-Math-220k"}
            for question, answer in ANSWERS
        ],
        ("train",),
        subsets=("all", "math"),
        files={"train": [f"{subset}/train-00000-of-00001.parquet" for subset in ("all", "math")]},
    ),
    "DigitalLearningGmbH/MATH-lighteval": Shape(
        "0530c78699ea5e8eb5530600900e1f328b48acad",
        {"problem": "str", "level": "str", "solution": "str", "type": "str"},
        [
            {"problem": question, "level": "Level 1", "type": "Algebra"}
            | {"solution": rf"It is not $\boxed{{9}}$, so it is $\boxed{{{answer}}}$."}
            for question, answer in ANSWERS
        ],
        ("train", "test"),
        subsets=("default",),
    ),
    "HuggingFaceH4/aime_2024": Shape(
        "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
        {"id": "int", **MATHS, "url": "str", "year": "str"},
        [
            {"id": 60, "problem": question, "solution": "", "answer": answer, "url": "", "year": "2024"}
            for question, answer in ANSWERS
        ],
        ("train",),
    ),
    "HuggingFaceH4/MATH-500": Shape(
        "ff5b20257d8185524591543f8ff5993951537bb8",
        {**MATHS, "subject": "str", "level": "int", "unique_id": "str"},
        [
            {"problem": question, "solution": "", "answer": answer, "subject": "Algebra", "level": 1}
            | {"unique_id": f"test/algebra/{i}.json"}
            for i, (question, answer) in enumerate(ANSWERS)
        ],
        ("test",),
        files={"test": ["test.jsonl"]},
    ),
}


def features(columns: Any) -> Any:
    """The `datasets` feature, or features, that a Shape's `columns` say."""
    from datasets import Features, Value

    names = {"str": "string", "int": "int64", "float": "float64", "bool": "bool"}
    if isinstance(columns, str):
        return Value(names[columns])
    if isinstance(columns, list):
        return [features(columns[0])]
    return Features({name: features(one) for name, one in columns.items()})


def write(name: str, folder: Path, shape: Shape | None = None) -> Path:
    """Write the dataset of that name, or of this shape, under `folder`; the path to load it from."""
    from datasets import Dataset

    shape, place = shape or DATASETS[name], folder / name.replace("/", "--")
    data = Dataset.from_list(list(shape.rows), features=features(shape.columns))
    for split in shape.splits:
        for file in shape.files.get(split, [f"data/{split}-00000-of-00001.parquet"]):
            path = place / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if file.endswith(".parquet"):
                data.to_parquet(path)
                continue
            lines = "".join(json.dumps(row) + "\n" for row in shape.rows).encode()
            path.write_bytes(gzip.compress(lines) if file.endswith(".gz") else lines)
    if shape.subsets:
        configs = [
            {
                "config_name": subset,
                "data_files": [
                    {"split": split, "path": f"{'data' if subset == 'default' else subset}/{split}-*"}
                    for split in shape.splits
                ],
            }
            for subset in shape.subsets
        ]
        # JSON is YAML too
        (place / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    return place
