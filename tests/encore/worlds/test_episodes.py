"""Worlds with a state: their goals against brute force, their luck, and what no text can forge."""

import random
from collections import Counter
from itertools import product

import guessing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from encore import worlds
from encore.errors import UserError
from encore.recipe.tool import Tool
from encore.sampling.tools import Asked, ToolInWorld, answers
from encore.sampling.turns import converse
from encore.worlds import STATEFUL, bandit_arms, episodes, shop
from encore.worlds.grids import MOVES
from encore.worlds.protocol import Problem

GRIDS = {"frozen_lake": {"size": [2, 3]}, "sokoban": {"size": [3, 3]}}
stateful = pytest.mark.parametrize("name", STATEFUL)


def in_world(name: str, **keys: int) -> ToolInWorld:
    """The tool of a world with a state, in the world as it is by default."""
    return ToolInWorld(Tool(name=name, **keys), worlds.make({"world": name}))


def problems(name: str, n: int = 60, **dials: object) -> tuple[worlds.World, list[Problem]]:
    world = worlds.make({"world": name, **dials})
    return world, worlds.sample(world, n, 0, "train")


def text(calls: list[str], answer: str) -> str:
    return "".join(f"<tool>{call}</tool>" for call in calls) + f"<answer>{answer}</answer>"


@pytest.mark.parametrize("name", GRIDS)
def test_the_difficulty_of_a_grid_is_the_fewest_moves_of_all_ways(name: str):
    world, drawn = problems(name, **GRIDS[name])
    for problem in [problem for problem in drawn if problem.difficulty <= 5]:
        lengths = range(problem.difficulty + 1)
        solved = {
            n: any(world.verify(problem, text([*way], "goal")) for way in product(MOVES, repeat=n))
            for n in lengths
        }
        assert [n for n in lengths if solved[n]] == [problem.difficulty], problem


def test_the_cheapest_sum_is_the_least_of_all_plans():
    _, drawn = problems("shop", units=[1, 6])
    for problem in drawn:
        stocks = [*shop.stocks(problem.question).values()]
        plans = product(*(range(units + 1) for _, units in stocks))
        needed = problem.difficulty
        sums = [
            sum(n * price for n, (price, _) in zip(plan, stocks, strict=True))
            for plan in plans
            if sum(plan) == needed
        ]
        assert problem.answer == str(min(sums))


def test_nothing_is_bought_beyond_the_stock_or_the_need():
    world = worlds.make({"world": "shop"})
    for problem in worlds.sample(world, 60, 0, "train"):
        for seller, (_, units) in shop.stocks(problem.question).items():
            for n in range(1, 10):
                turn = world.act(world.begin(problem.question), f"{seller}{n}")
                assert turn.observation == ("ok" if n <= min(units, problem.difficulty) else "no")


def test_arms_win_as_often_as_the_question_says_and_each_is_best_as_often():
    world, drawn = problems("bandit_arms", 1000, best=7, rest=3)
    assert max(abs(count / 1000 - 1 / 3) for count in Counter(p.answer for p in drawn).values()) < 0.05
    wins: dict[bool, list[int]] = {True: [], False: []}
    for problem in drawn:
        state = world.begin(problem.question)
        for arm in "abc":
            wins[arm == problem.answer].append(int(world.act(state, arm).observation))
    assert sum(wins[True]) / len(wins[True]) == pytest.approx(0.7, abs=0.05)
    assert sum(wins[False]) / len(wins[False]) == pytest.approx(0.3, abs=0.05)


def test_the_order_of_pulls_does_not_change_what_an_arm_brings():
    _, (problem, *_) = problems("bandit_arms")
    pulls = [*"aabbcc"]
    seen = []
    for order in (pulls, pulls[::-1]):
        turns = episodes.play(bandit_arms.BanditArms(), problem.question, order)
        state = [turn.state for _, turn in turns][-1]
        seen.append([state.of(arm) for arm in "abc"])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("slips", [0, 3])
def test_a_step_slips_aside_as_often_as_the_question_says(slips: int):
    world, drawn = problems("frozen_lake", 600, slips=slips, size=[8, 8], holes=0.0)
    slipped = []
    for problem in drawn:
        state = world.begin(problem.question)
        row, column = state.cell
        if row == 0:
            continue
        cell = world.act(state, "U").state.cell
        slipped.append(cell != (row - 1, column))
        assert cell[0] in (row - 1, row)  # never down
    assert sum(slipped) / len(slipped) == pytest.approx(slips / 10, abs=0.06 if slips else 0)


def test_a_discounted_walk_is_worth_less_by_each_step():
    """The shortest way, and the same way after idle steps; nothing without arrival, or without the answer."""
    world, drawn = problems("frozen_lake", size=[2, 3])
    for problem in [problem for problem in drawn if problem.difficulty <= 3]:
        ways = [[*way] for way in product(MOVES, repeat=problem.difficulty)]
        way = next(way for way in ways if world.verify(problem, text(way, "goal")))
        discounted = world.rewards["discounted"]
        assert discounted(problem, text(way, "goal")) == pytest.approx(0.9**problem.difficulty)
        longer = ([*idle, *way] for idle in product(MOVES, repeat=2))
        arrives = [walk for walk in longer if world.verify(problem, text(walk, "goal"))]
        steps = [episodes.last_state(world, problem.question, text(walk, "goal")).steps for walk in arrives]
        values = [discounted(problem, text(walk, "goal")) for walk in arrives]
        assert values == [pytest.approx(0.9**count) for count in steps]
        assert discounted(problem, text(way, "hole")) == discounted(problem, text(way[:-1], "goal")) == 0


def test_a_hole_and_a_pushed_box_cannot_be_taken_back():
    lake = worlds.make({"world": "frozen_lake"})
    state = lake.act(lake.begin("SHG/FFF/FFF0="), "R").state
    assert episodes.act(lake, state, "R") == episodes.Turn(state, "over", False)
    assert not lake.verify(Problem("SHG/FFF/FFF0=", "goal", 2), text([*"RRR"], "goal"))
    box = Problem("PB./.../..T=", "goal", 9)
    for way in product(MOVES, repeat=5):
        if "R" in way and way[0] == "R":  # the box is in the corner
            assert not worlds.make({"world": "sokoban"}).verify(box, text([*way], "goal"))


@stateful
def test_documents_hold_what_is_observed_and_end_well(name: str):
    world, drawn = problems(name)
    rng, tool = random.Random(0), in_world(name, calls=64, longest=9)
    for problem in drawn:
        for kind in world.kinds:
            document = world.document(problem, kind, rng)
            calls = [call for call, _ in episodes.calls(document)]
            said = [f"<tool>{call}</tool>" for call in calls]
            observed = [
                answers(tool, [Asked(f"<user>{problem.question}<assistant>", said[: n + 1])])[0].text
                for n in range(len(said))
            ]
            assert observed == [part.partition("</result>")[0] for part in document.split("<result>")[1:]]
            if kind in ("walk", "push", "asking"):
                assert world.verify(problem, document)
                assert all(world.steps(problem, document))
            ends = world.step_ends(problem, document)
            assert [document[:end].endswith("</tool>") for end in ends] == [True] * len(calls)


@stateful
def test_a_forged_observation_is_worth_nothing(name: str):
    world, drawn = problems(name)
    for problem in drawn:
        document = f"<tool></tool><result>{problem.answer}</result><answer>{problem.answer}</answer>"
        assert world.verify(problem, document) == (name == "bandit_arms")


@stateful
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_a_policy_is_told_is_what_its_text_is_judged_by(name: str, data: st.DataObject):
    """The sampler's observations are those that the verifier finds in the policy's own text."""
    world = worlds.make({"world": name})
    words = worlds.tokenizer([world])
    problem = world.problem(random.Random(data.draw(st.integers(0, 99))))
    texts = data.draw(
        st.lists(st.lists(st.sampled_from(world.vocabulary[:-9]), max_size=3), min_size=1, max_size=6)
    )
    said = iter(["<tool>" + "".join(parts) + "</tool>" for parts in texts])

    def draw(contexts, cap, also):
        ids = words(next(said, "<eos>"))["input_ids"]
        return [ids for _ in contexts], None

    prompt = words(f"<user>{problem.question}<assistant>")["input_ids"]
    (talk,) = converse([prompt], 200, draw, in_world(name, calls=len(texts), longest=9), words)
    own = words.decode(talk.said())
    played = episodes.play(world, problem.question, [call for call, _ in episodes.calls(own)])
    observed = [turn.observation for _, turn in played]
    results = [part.partition("</result>")[0] for part in words.decode(talk.ids).split("<result>")[1:]]
    assert results == observed


def test_a_prompt_without_the_worlds_question_gets_an_error():
    tool = in_world("frozen_lake", calls=2, longest=2)
    (answer,) = answers(tool, [Asked("<user>3+5=<assistant>", ["<tool>R</tool>"])])
    assert (answer.text, answer.good) == ("error", False)


def test_no_more_calls_are_answered_than_the_verifier_plays():
    tool = in_world("bandit_arms", calls=99, longest=2)
    asked = Asked("<user>abc82 1=<assistant>", ["<tool>a</tool>"] * (episodes.MOST + 1))
    (answer,) = answers(tool, [asked])
    assert (answer.text, answer.good) == ("over", False)


def test_a_world_of_a_user_that_lacks_an_act_is_refused():
    with pytest.raises(UserError, match="guessing:Calls lacks question_form, begin, act, over, told"):
        ToolInWorld(Tool(name="guessing:Calls", calls=1, longest=1), guessing.Calls())
