"""The playing of an environment's episodes, in sessions that are few, and may be begun anew at any time."""

import json
import math
from dataclasses import dataclass, field
from functools import cached_property

from encore import own_code
from encore.errors import UserError, nearest
from encore.worlds.calculator import ERROR
from encore.worlds.environment_open import opened
from encore.worlds.environment_session import Observed, Refused, Schema, Session, Source, parsed

KEPT = 50_000  # largest number of calls whose observations are remembered
REPLAYED = 8  # number of episodes that are played twice, whether or not they are in memory
SHOWN = 80  # characters of an observation in a message
NOT_AGAIN = "when played again; an environment must follow from the number that reset gets"


@dataclass(frozen=True)
class Episode:
    """The state of an episode: its number, and the calls so far."""

    number: int
    calls: tuple[str, ...] = ()

    def then(self, call: str) -> "Episode":
        """Return the episode after one more call."""
        return Episode(self.number, (*self.calls, call))


@dataclass(frozen=True)
class Limits:
    """The limits of an environment: its range of rewards, sessions at a time, and seconds of a call."""

    lowest: float = 0.0
    highest: float = 1.0
    sessions: int = 1024
    seconds: float = own_code.LIMIT


@dataclass
class Player:
    """A player of the environment `name` with the constructor's `arguments`, which are JSON.

    All that it remembers can be had again by playing the calls again, so it forgets when it holds too much.
    An episode whose session has been taken for another one is played again too. Methods raise UserError if
    the environment fails, takes too long, pays what is outside its range, or brings something else when it
    is played again.
    """

    name: str
    arguments: str
    limits: Limits
    observed: dict[Episode, Observed] = field(default_factory=dict)
    rewarded: dict[tuple[Episode, str], float] = field(default_factory=dict)  # by the policy's own text too
    live: dict[Episode, list[Session]] = field(default_factory=dict)  # sessions, by where they stand
    idle: list[Session] = field(default_factory=list)  # sessions whose episode is over
    sessions: int = 0  # number of sessions
    replayed: int = 0  # number of episodes that were played twice

    @cached_property
    def source(self) -> Source:
        """The environment, which is opened when it is first needed."""
        return opened(self.name, json.loads(self.arguments), self.limits.seconds)

    @cached_property
    def tools(self) -> dict[str, Schema]:
        """The JSON schemas of the tools, by their names."""
        return {schema["function"]["name"]: schema for schema in self.source.tools()}

    def begin(self, number: int) -> Observed:
        """Return what is observed first in an episode; its session is idle then."""
        start = Episode(number)
        if start not in self.observed:
            self.idle.append(self._reset(start))
        return self.observed[start]

    def after(self, state: Episode) -> Observed:
        """Return what is observed after the last call of an episode, or at its beginning if it has none."""
        if state not in self.observed:
            if len(self.observed) > KEPT:
                self.observed.clear()
            if state.calls:
                session = self._at(Episode(state.number, state.calls[:-1]))
                self.observed[state] = self._call(session, state)
            else:
                session = self._reset(state)
            self.live.setdefault(state, []).append(session)
        return self.observed[state]

    def reward(self, state: Episode, completion: str) -> float:
        """Return the reward of an episode that ends at `state`, which `completion` has played."""
        if (state, completion) in self.rewarded:
            return self.rewarded[state, completion]
        value = self._reward(state, completion)
        if state.calls and self.replayed < REPLAYED:
            self.replayed += 1
            again = self._reward(state, completion, replay=True)
            if again != value:
                raise UserError(f"{self._label(state)}: reward {value:g} first, and {again:g} {NOT_AGAIN}")
        if len(self.rewarded) > KEPT:
            self.rewarded.clear()
        self.rewarded[state, completion] = value
        return value

    def _reward(self, state: Episode, completion: str, replay: bool = False) -> float:
        """Return the reward as the environment gives it now; its session is idle then."""
        session, label = self._at(state, replay), self._label(state)
        value = own_code.bounded(label, session.reward, self.limits.seconds)(completion)
        self.idle.append(session)
        lowest, highest = self.limits.lowest, self.limits.highest
        is_number = isinstance(value, int | float) and math.isfinite(value)
        if not is_number or not lowest <= value <= highest:
            raise UserError(
                f"{label}: reward {value!r:.{SHOWN}}; expected a number from {lowest:g} to {highest:g}; set "
                "task.reward_range to what it gives"
            )
        return float(value)

    # -- sessions ----------------------------------------------------------------------------------------

    def _at(self, state: Episode, replay: bool = False) -> Session:
        """Return a session that stands at `state`; play the calls if there is none, or to `replay` them."""
        if not replay and (session := self._taken(state)):
            return session
        played = Episode(state.number)
        session = self._reset(played)
        for call in state.calls:
            played = played.then(call)
            self._compare(played, self._call(session, played))
        return session

    def _taken(self, state: Episode) -> Session | None:
        """Return a session that waits at `state`, which waits there no longer; None if none does."""
        waiting = self.live.get(state)
        if not waiting:
            return None
        session = waiting.pop()
        if not waiting:
            del self.live[state]
        return session

    def _reset(self, start: Episode) -> Session:
        """Begin an episode in an idle or new session, or in the one that waits longest, and return it."""
        session = self.idle.pop() if self.idle else None
        if session is None and self.sessions >= self.limits.sessions and self.live:
            session = self._taken(next(iter(self.live)))
        if session is None:
            session = self.source.session()
            self.sessions += 1
        text = own_code.bounded(self._label(start), session.reset, self.limits.seconds)(start.number)
        self._compare(start, Observed(text, state=session.state, over=session.over))
        return session

    def _call(self, session: Session, state: Episode) -> Observed:
        """Return what follows the last call of `state` in a session that stands before this call."""
        name, arguments, wrong = parsed(state.calls[-1])
        if not wrong and name not in self.tools:
            wrong = f'no tool "{name}"{nearest(name, [*self.tools])}' if self.tools else "there are no tools"
        try:
            if wrong:
                raise Refused(wrong)
            text = own_code.bounded(self._label(state), session.call, self.limits.seconds)(name, arguments)
        except Refused as refusal:
            return Observed(f"{ERROR}: {refusal}", good=False, state=session.state, over=session.over)
        return Observed(text, True, session.reward_of_call, session.state, session.over)

    def _compare(self, state: Episode, observed: Observed) -> None:
        """Remember what was observed. Raises UserError if something else was observed before."""
        before = self.observed.setdefault(state, observed)
        if observed != before:
            pairs = zip(before.compared(), observed.compared(), strict=True)
            first, again = next((a, b) for a, b in pairs if a != b)
            seen = f"{first[:SHOWN]!r} first, and {again[:SHOWN]!r}"
            raise UserError(f"{self._label(state)}: {seen} {NOT_AGAIN}")

    def _label(self, state: Episode) -> str:
        """Return the words that begin a message on what happened after the last call of `state`."""
        call = f", call {len(state.calls)}" if state.calls else ""
        return f"environment {self.name}, episode {state.number}{call}"
