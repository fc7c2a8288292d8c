"""Documents of PPO-ptx: as many in an optimizer step on any number of processes."""

import pytest
from stage_runs import TASK, TEMPLATE

from encore import worlds
from encore.errors import UserError
from encore.learning import ptx
from encore.recipe.kinds.ppo import Ptx

TOKENIZER = worlds.tokenizer([worlds.make(TASK)])
KEY = {
    "coefficient": 1.0,
    "batch_size": 12,
    "task": TASK,
    "template": TEMPLATE,
    "corpus": {"documents": 30, "mixture": {"direct": 1.0}},
}
PTX = Ptx.model_validate(KEY)


def test_a_step_has_the_same_documents_however_they_are_spread():
    whole = [ids.tolist() for ids in ptx.read_documents(PTX, TOKENIZER, 0).batch(0)["input_ids"]]
    for parts in (2, 4, 12):
        spread = ptx.read_documents(PTX, TOKENIZER, 0, parts)
        rows = [row.tolist() for part in range(parts) for row in spread.batch(part)["input_ids"]]
        assert [[t for t in row if t] for row in rows] == [[t for t in row if t] for row in whole]


def test_what_does_not_divide_is_refused():
    with pytest.raises(UserError, match=r"12 documents do not divide among 5 micro-batches; nearest: 10"):
        ptx.read_documents(PTX, TOKENIZER, 0, 5)
