"""Reward functions in TRL's signature: `(prompts, completions, completion_ids, **columns) -> list of floats`.

| name            | value                                                                                    |
|-----------------|------------------------------------------------------------------------------------------|
| accuracy        | 1 if the answer is right, by the world's or the data set's verifier (`verifier`), else 0 |
| format          | 1 if the completion is `<think>…</think><answer>…</answer>` (R1-Zero), else 0            |
| random          | 1 or 0 by a fair coin, whatever the completion (the spurious reward of a control)        |
| reasoning_style | the share of four marks of reasoning that the completion has (reasoning_style.py)        |
| brief           | 1 if the reasoning is at most twice as long as its question (brief.py), else 0           |
| english         | the share of the scratchpad's words that are in Latin letters (english.py)               |
| soft_overlong   | 0, falling to -1 in the last tokens before the cap (DAPO Eq. 13)                         |
| majority        | 1 if no answer of the group is more common than the completion's (votes.py)              |
| incorrect       | 1 if an answer is stated and is wrong (votes.py), else 0                                 |

Programs with unit tests lack the last two. Two rewards are for worlds alone: `lenient` has a consolation for
answers that cannot be judged (lenient.py), and `brief_if_right` pays for the brevity of right answers alone.

A world may add its own rewards, such as the partial credit of `sort`. A data set of `verifier: tests` has the
rewards of encore/sandbox/verdicts.py. `my_module:function` names a user's function: called as TRL calls
rewards, always with texts, it returns a finite number for each completion. Accuracy and format are judged
apart, as in DeepSeek-R1, §2.2.2: an answer without a scratchpad can be right, and a well-formed completion
wrong.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from math import isfinite
from typing import Any

from encore import own_code
from encore.errors import UserError
from encore.recipe.caps import Caps
from encore.recipe.reward_names import OVERLONG, TESTS, check_overlong, check_reward_names
from encore.rewards import unit_tests, votes
from encore.rewards.brief import brief, brief_if_right
from encore.rewards.english import english
from encore.rewards.lenient import lenient
from encore.rewards.math_answers import Comparer
from encore.rewards.overlong import soft_overlong
from encore.rewards.reasoning_style import reasoning_style
from encore.rewards.verifiers import math_verdicts, verifier
from encore.sandbox.verdicts import REWARDS, Verdicts, passed
from encore.worlds.answers import answer, formatted
from encore.worlds.final_answer import final_answer
from encore.worlds.gym import Gym, right
from encore.worlds.protocol import Problem, World

Reward = Callable[..., list[float]]
Score = Callable[[Problem, str], float]

# rewards that read texts; encore/recipe/reward_names.py has their names
OF_TEXTS: dict[str, Score] = {"reasoning_style": reasoning_style, "brief": brief, "english": english}
OF_WORLDS = {"lenient": lenient, "brief_if_right": brief_if_right}


def build(
    names: Iterable[str],
    world: World | None,
    seed: int = 0,
    *,
    caps: Caps | None = None,
    cache: int | None = None,
    verifies: str = "math",
) -> list[Reward]:
    """Return the reward functions of these names, in order.

    Without a world, the verifier `verifies` decides accuracy. The functions read the columns `question`,
    `answer` and, if they exist, `difficulty`, `number` and `prefill`, which is the beginning of a completion
    that its prompt has. `caps` and `cache`, in tokens, are L_max and L_cache of soft_overlong. Raises
    UserError for an unknown name, or a cache that is missing or too large.
    """
    names = list(names)
    check_reward_names(names, world, verifies)
    check_overlong(names, cache, min((caps or {}).values(), default=None))
    world_rewards = world.rewards if world else {}
    tested = _tested() if not world and verifies == TESTS else _of_gym(world) if world else {}
    rewards = []
    for name in names:
        if name in tested:
            rewards.append(tested[name])
        elif name == "accuracy":
            rewards.append(_accuracy(world, verifies))
        elif name == "format":
            rewards.append(_scored(name, lambda problem, completion: formatted(completion)))
        elif name == "random":
            rewards.append(coin(seed))
        elif name == "majority":
            rewards.append(_majority(_reader(world)))
        elif name == "incorrect":
            rewards.append(_incorrect(_reader(world), tested.get("accuracy") or _accuracy(world, verifies)))
        elif name in OF_TEXTS:
            rewards.append(_scored(name, OF_TEXTS[name]))
        elif name == OVERLONG:
            rewards.append(soft_overlong(caps or {}, cache or 0))
        elif name in OF_WORLDS and world:
            rewards.append(_scored(name, partial(OF_WORLDS[name], world)))
        elif own_code.is_own(name):
            rewards.append(_own(name))
        else:
            rewards.append(_scored(name, world_rewards[name]))
    return [_with_beginning(reward) for reward in rewards]


def _with_beginning(reward: Reward) -> Reward:
    """Return `reward`, which then reads completions with their prefills (column `prefill`)."""

    def of_whole(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        if begun := columns.get("prefill"):
            pairs = zip(begun, completions, strict=True)
            completions = [f"{start or ''}{text(completion)}" for start, completion in pairs]
        return reward(prompts=prompts, completions=completions, completion_ids=completion_ids, **columns)

    of_whole.__name__ = reward.__name__
    return of_whole


def _own(name: str) -> Reward:
    """Return the user's function `name`, as a reward.

    It raises UserError if it takes too long, or does not return a finite number for each completion.
    """
    score = own_code.bounded(name, own_code.load(name))

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        texts = {
            "prompts": [text(turns) for turns in prompts],
            "completions": [text(turns) for turns in completions],
        }
        values = score(**texts, completion_ids=completion_ids, **columns)
        if not isinstance(values, Sequence) or len(values) != len(completions):
            count = f"{len(values)} values" if isinstance(values, Sequence) else type(values).__name__
            raise UserError(f"{name}: expected a list of {len(completions)} numbers, got {count}")
        for value, completion in zip(values, texts["completions"], strict=True):
            if not isinstance(value, int | float) or not isfinite(value):
                raise UserError(f"{name}: expected a finite number, got {value!r} for {completion[:40]!r}")
        return [float(value) for value in values]

    reward.__name__ = name
    return reward


def _accuracy(world: World | None, verifies: str) -> Reward:
    if world is None and verifies == "math":
        return mathematics(Comparer())
    return _scored("accuracy", world.verify if world else verifier(verifies))


def _scored(name: str, score: Score) -> Reward:
    """Return TRL's reward function, made of a score of one problem and one completion."""

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        questions, answers = columns["question"], columns["answer"]
        difficulties = columns.get("difficulty") or [0] * len(completions)
        return [
            float(score(Problem(q, a, d), text(c)))
            for q, a, d, c in zip(questions, answers, difficulties, completions, strict=True)
        ]

    reward.__name__ = name
    return reward


def coin(seed: int) -> Reward:
    """Return a reward that is a fair coin, fixed by seed, training step, prompt, completion and occurrence.

    So a resumed run sees the same rewards, and the order in a batch does not matter. The step is included so
    that no completion is rewarded at every step.
    """

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        step = getattr(columns.get("trainer_state"), "global_step", 0)
        seen: Counter[str] = Counter()
        values = []
        for prompt, completion in zip(prompts, completions, strict=True):
            key = repr((seed, step, text(prompt), text(completion)))
            seen[key] += 1
            digest = blake2b(f"{key} {seen[key]}".encode(errors="surrogatepass"), digest_size=1).digest()
            values.append(float(digest[0] & 1))
        return values

    reward.__name__ = "random"
    return reward


def _reader(world: World | None) -> Callable[[str], str | None]:
    """Return the function that reads the answer that a completion states; it returns None without one."""
    return getattr(world, "stated", answer if world else final_answer)


def _majority(read: Callable[[str], str | None]) -> Reward:
    """Return the reward `majority` of votes.py."""

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        return votes.majority([*map(text, prompts)], [read(text(turns)) for turns in completions])

    reward.__name__ = "majority"
    return reward


def _incorrect(read: Callable[[str], str | None], accuracy: Reward) -> Reward:
    """Return the reward `incorrect` of votes.py, whose wrong answers are wrong by the reward `accuracy`."""

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        values = accuracy(prompts=prompts, completions=completions, completion_ids=completion_ids, **columns)
        return votes.incorrect(values, [read(text(turns)) for turns in completions])

    reward.__name__ = "incorrect"
    return reward


def _tested() -> dict[str, Reward]:
    """Return the rewards of programs with unit tests.

    They share one run of a batch's programs in the sandbox, and log how many programs ran out of time.
    """

    @lru_cache(maxsize=1)
    def judged(*columns: tuple[str, ...]) -> tuple[list[Verdicts], int]:
        questions, answers, completions = columns
        problems = [Problem(q, a, 0) for q, a in zip(questions, answers, strict=True)]
        return unit_tests.rollout(problems, completions)

    def reward(name: str, rule: Callable[[Verdicts], float]) -> Reward:
        def of(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
            texts = tuple(text(completion) for completion in completions)
            verdicts, unfinished = judged(tuple(columns["question"]), tuple(columns["answer"]), texts)
            if log := columns.get("log_metric"):
                log(f"rewards/{name}/unfinished", float(unfinished))
            return [float(rule(verdict)) for verdict in verdicts]

        of.__name__ = name
        return of

    return {name: reward(name, rule) for name, rule in {"accuracy": passed, **REWARDS}.items()}


def _of_gym(world: World) -> dict[str, Reward]:
    """Return the rewards of a task of reasoning-gym; {} for another world.

    Together they score a batch only once.
    """
    if not isinstance(world, Gym):
        return {}

    @lru_cache(maxsize=1)
    def judged(*columns: tuple[Any, ...]) -> list[float]:
        questions, answers, numbers, completions = columns
        each = zip(questions, answers, numbers, strict=True)
        return world.scores([Problem(q, a, 0, number=number) for q, a, number in each], completions)

    rules: dict[str, Callable[[float], float]] = {"accuracy": right, "partial": float}

    def reward(name: str, rule: Callable[[float], float]) -> Reward:
        def of(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
            arguments = (tuple(columns[key]) for key in ("question", "answer", "number"))
            return [float(rule(score)) for score in judged(*arguments, tuple(map(text, completions)))]

        of.__name__ = name
        return of

    return {name: reward(name, rule) for name, rule in rules.items()}


def mathematics(equal: Comparer) -> Reward:
    """Return the accuracy reward, which compares answers by `math_verdicts`.

    It logs how many answers were not compared within the rollout's budget, and the share of completions
    without a readable answer. Both count as wrong.
    """

    def reward(prompts: list, completions: list, completion_ids: Any = None, **columns: Any) -> list[float]:
        before = equal.unfinished
        pairs = zip(columns["question"], columns["answer"], strict=True)
        verdicts = math_verdicts(equal, [Problem(q, a, 0) for q, a in pairs], [*map(text, completions)])
        if log := columns.get("log_metric"):
            log("rewards/accuracy/unfinished", float(equal.unfinished - before))
            log("rewards/accuracy/unreadable", verdicts.count("unreadable") / len(verdicts))
        return [float(verdict == "right") for verdict in verdicts]

    reward.__name__ = "accuracy"
    return reward


def text(turns: Any) -> str:
    """Return the text of a prompt or completion: a string, or a conversation's messages joined."""
    return turns if isinstance(turns, str) else "".join(message["content"] or "" for message in turns)
