r"""Rollouts that are sampled ahead of the updates, as in asynchronous RL: the policy learns from stale ones.

**Staleness.** Version v of the policy has learned from v rollouts; a rollout may have several updates. The
staleness of a rollout is the number of versions from the one that sampled it to the one that begins to learn
from it. AReaL (arXiv 2505.24298, `max_head_offpolicyness`) and prime-rl (`max_async_level`) count likewise.
With `max_staleness` n there are n rollouts in flight while one is learned from:

    rollout j is sampled by version max(j - n, 0) and learned from by version j

Rollouts 0 to n are all sampled by version 0, so their staleness rises from 0 to n, and remains n to the last
rollout. Prompts come in the order of synchronous training. With n = 0 the run *is* synchronous, bit for bit.
Rewards, advantages and \pi_ref are computed when a rollout is learned from, and so are the log lines.

**Off-policy correction.** Let \pi_s be the version that sampled, whose log-probabilities the sampler reports.

| vllm_importance_sampling_correction | loss of a stale rollout                                              |
|-------------------------------------|----------------------------------------------------------------------|
| true                                | \pi_old is the version that begins to learn; each term is multiplied |
|                                     | by \pi_old / \pi_s, clipped (encore/objectives/sampler_correction)   |
| false                               | \pi_old is \pi_s, from which the clip of the ratio then counts       |

The first is the decoupled objective of AReaL, with a bound on the weight. The second is PPO's own objective
with stale samples, which TRL's AsyncGRPOTrainer has.

**In time.** A vLLM server samples while the policy is updated; each rollout has the weights of one version
throughout. Before the server gets new weights, it finishes what it samples, and so does a checkpoint. More
than one rollout in flight therefore saves no more time. Other samplers take turns with the updates, to the
same effect: staleness can be studied without a second device.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import ceil
from typing import NamedTuple

from encore.learning.measures import Measures
from encore.learning.prompt_order import rows_of
from encore.learning.resumable import State
from encore.learning.samplers import Sampled, Sampler, ServerSampler, TokenLists


class InFlight(NamedTuple):
    """A rollout that is not yet learned from."""

    version: int  # the version of the policy that samples it
    sampled: Future[Sampled]


class AheadSampler(Sampler):
    """A sampler that returns the oldest of the rollouts in flight."""

    def __init__(self, sampler: Sampler, ahead: int, measures: Measures):
        """Sample by `sampler`, `ahead` rollouts before they are learned from."""
        super().__init__(sampler.trainer, sampler.drawing)
        self.sampler, self.ahead, self.measures = sampler, ahead, measures
        self.in_flight: deque[InFlight] = deque()
        self.drawn = 0  # number of rollouts whose sampling has begun
        self.thread = ThreadPoolExecutor(1) if isinstance(sampler.drawing, ServerSampler) else None

    @property
    def version(self) -> int:
        """The number of rollouts that the policy has learned from."""
        return self.trainer._step // self._micro_batches

    @property
    def rollouts(self) -> int:
        """The number of rollouts of the whole run."""
        steps = self.trainer.state.max_steps * self.trainer.args.gradient_accumulation_steps
        return ceil(steps / self._micro_batches)

    def sample(self, prompts: list[str], cap: int) -> Sampled:
        """Return the oldest rollout in flight, whose prompts are `prompts`."""
        last = min(self.version + self.ahead + 1, self.rollouts)
        if self.drawn < last:
            self._load()
        for number in range(self.drawn, last):
            rows = rows_of(self.trainer, number, len(prompts))
            ids = self.sampler.tokenized([row["prompt"] for row in rows])
            self.in_flight.append(InFlight(self.version, self._begun(ids, cap)))
        self.drawn = max(self.drawn, last)
        version, future = self.in_flight.popleft()
        sampled = future.result()
        assert sampled.prompts == self.sampler.tokenized(prompts), "the rollout in flight has other prompts"
        self.staleness = self.version - version
        self.measures.staleness(self.staleness)
        return sampled

    @property
    def _micro_batches(self) -> int:
        """The number of micro-batches that learn from a rollout."""
        return self.trainer.args.steps_per_generation * self.trainer.args.num_iterations

    def _load(self) -> None:
        """Give a server the policy's weights, once it has sampled all that is in flight."""
        if isinstance(self.drawing, ServerSampler):
            self._finished()
            self.drawing.load()

    def _begun(self, prompts: TokenLists, cap: int) -> Future[Sampled]:
        """Return a rollout that a server is sampling, or that is sampled now."""
        if self.thread:
            return self.thread.submit(self.sampler.completed, prompts, cap)
        return _done(self.sampler.completed(prompts, cap))

    def _finished(self) -> Sequence[tuple[int, Sampled]]:
        """Wait for all rollouts in flight, and return them with their versions."""
        return [(version, future.result()) for version, future in self.in_flight]

    # -- resume ------------------------------------------------------------------------------------------

    def state(self) -> State:
        rollouts = [(version, vars(sampled)) for version, sampled in self._finished()]
        return {"drawn": self.drawn, "staleness": self.staleness, "in_flight": rollouts}

    def restore(self, state: State) -> None:
        self.drawn, self.staleness = state["drawn"], state["staleness"]
        self.in_flight = deque(
            InFlight(version, _done(Sampled(**rest))) for version, rest in state["in_flight"]
        )


def _done(sampled: Sampled) -> Future[Sampled]:
    """Return `sampled` as a rollout that need not be waited for."""
    future: Future[Sampled] = Future()
    future.set_result(sampled)
    return future
