"""Small copies of data sets of programs: as in hub_datasets, with none of the text.

From the data sets' cards and files on the Hub; HumanEval's `test` from the form of its repository's.
"""

from data_set_files import Shape

MBPP = {
    "task_id": 601,
    "text": "Write a function to double a number.",
    "code": "def double(x):\r\n  return 2 * x",
    "test_list": ["assert double(2) == 4", "assert double(-3) == -6", "assert double(0) == 0"],
    "test_setup_code": "",
    "challenge_test_list": [],
}
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": 'from typing import List\n\n\ndef halve(xs: List[float]) -> float:\n    """ Half of the sum.\n'
    '    >>> halve([1.0])\n    0.5\n    """\n',
    "canonical_solution": "    return sum(xs) / 2\n",
    "test": "\n\nMETADATA = {\n    'author': 'jt',\n    'dataset': 'test'\n}\n\n\ndef check(candidate):\n"
    "    assert candidate([1.0]) == 0.5\n    assert abs(candidate([0.1, 0.2]) - 0.15) < 1e-6\n"
    '    assert candidate([]) == 0, "nothing"\n    assert True\n\n',
    "entry_point": "halve",
}

DATASETS = {
    "google-research-datasets/mbpp": Shape(
        "4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        {
            "task_id": "int",
            "text": "str",
            "code": "str",
            "test_list": ["str"],
            "test_setup_code": "str",
            "challenge_test_list": ["str"],
        },
        [
            MBPP,
            MBPP
            | {"task_id": 602, "text": "Write a function to find the similar elements."}
            | {
                "test_list": [f"assert set(alike({n},{n})) == set({n})" for n in ("(1, 2)", "(3,)", "(4, 5)")]
            },
        ],
        ("train", "test", "validation", "prompt"),
        subsets=("full",),
        files={
            split: [f"full/{split}-00000-of-00001.parquet"]
            for split in ("train", "test", "validation", "prompt")
        },
    ),
    "openai/openai_humaneval": Shape(
        "7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544",
        dict.fromkeys(("task_id", "prompt", "canonical_solution", "test", "entry_point"), "str"),
        [HUMANEVAL, HUMANEVAL | {"task_id": "HumanEval/1"}],
        ("test",),
        subsets=("openai_humaneval",),
        files={"test": ["openai_humaneval/test-00000-of-00001.parquet"]},
    ),
}
