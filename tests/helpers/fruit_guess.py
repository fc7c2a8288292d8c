"""A taskset of verifiers, with a toolset, a typed state that tools and rewards share, and two rewards."""

import verifiers.v1 as vf

__all__ = ["FruitGuess"]
WORDS = ("apple", "grape", "lemon")


class Fruit(vf.TaskData):
    word: str


class Asked(vf.State):
    letters: int = 0


class Hints(vf.Toolset[vf.ToolsetConfig, Asked]):
    TOOL_PREFIX = None

    async def setup_task(self, task):
        self.word = task.word

    @vf.tool
    async def letter(self, place: int) -> str:
        """Tell a letter of the word; the first has place 0."""
        self.state.letters += 1
        return self.word[place]


class Guess(vf.Task[Fruit, Asked]):
    @classmethod
    def toolsets(cls, config):
        return [Hints(vf.ToolsetConfig())]

    @vf.reward
    async def right(self, trace) -> float:
        return float(trace.last_reply.strip() == self.data.word)

    @vf.reward(weight=-0.1)
    async def asked(self, trace) -> float:
        """A price for each letter; each that was answered is a message, after the turn that asked for it."""
        answered = [m.content for m in trace.tool_messages]
        assert len(answered) <= trace.state.letters
        assert all(text in self.data.word for text in answered)
        return float(trace.state.letters)


class Config(vf.TasksetConfig):
    count: int = 3


class FruitGuess(vf.Taskset[Guess, Config]):
    def load(self):
        for word in WORDS[: self.config.count]:
            data = Fruit(prompt="Which fruit do I mean?", system_prompt="Be brief.", word=word)
            yield Guess(data, self.config.task)
