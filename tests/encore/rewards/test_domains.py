"""A domain's reward is of its own rows alone, whatever the batch."""

from hypothesis import given
from hypothesis import strategies as st

from encore.rewards.domains import routed, split


def length(prompts, completions, completion_ids=None, **columns):
    """The reward of a row is its number of tokens, plus its difficulty."""
    pairs = zip(completion_ids, columns["difficulty"], strict=True)
    columns["log_metric"]("rewards/length/rows", float(len(prompts)))
    return [float(len(ids) + difficulty) for ids, difficulty in pairs]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.integers(0, 9)), max_size=12))
def test_rows_of_another_domain_have_none_and_no_say(rows):
    logged = {}
    values = routed(length, "length", "a")(
        prompts=[""] * len(rows),
        completions=[""] * len(rows),
        completion_ids=[[1] * tokens for _, tokens, _ in rows],
        domain=[domain for domain, _, _ in rows],
        difficulty=[difficulty for _, _, difficulty in rows],
        log_metric=lambda name, value: logged.update({name: value}),
        trainer_state=None,
    )
    assert values == [tokens + more if domain == "a" else None for domain, tokens, more in rows]
    own = sum(domain == "a" for domain, _, _ in rows)
    assert logged == ({"rewards/length/a/rows": own} if own else {})


def test_its_name_has_the_domain():
    assert split(routed(length, "length", "a").__name__) == ("length", "a")
    assert split("accuracy") == ("accuracy", "")
