"""The tools that a policy may call."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from encore import own_code
from encore.errors import nearest
from encore.recipe.base import Mistake, Model, Positive, refuse
from encore.worlds import STATEFUL, environment
from encore.worlds.products import CALL, RESULT

# the texts around a result of an environment, in the chat templates of Qwen and Hermes: the policy's turn
# ends, the result is a user's turn, and the policy goes on
CHAT_RESULT = (
    "<|im_end|>\n<|im_start|>user\n<tool_response>\n",
    "\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
)

Around = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=2, max_length=2)
]


def _known(name: str) -> str:
    """Return the name of a tool or of a world with a state; refuse any other."""
    names = ["calculator", "python", environment.KEY, *STATEFUL]
    if name not in names and not own_code.is_own(name):
        refuse(f'no tool "{name}"{nearest(name, names)}')
    return name


class Tool(Model):
    """A tool that the policy may call (encore/sampling/tools.py)."""

    # calculator; python, which runs in the sandbox; or a world with a state, in which the calls act:
    # bandit_arms, frozen_lake, shop, sokoban, my_module:Class (docs/world.md), or environment, the task's
    name: Annotated[str, AfterValidator(_known)]
    calls: Positive  # calls answered in one completion; further calls get no answer
    longest: Positive  # tokens of a result; longer results are cut
    # the texts before and after a call, the second of which must be one token; an environment has <tool_call>
    # and </tool_call>
    call: Around = CALL
    # the texts before and after a result; an environment has the turns of Qwen's chat template by default
    result: Around = RESULT

    @model_validator(mode="before")
    @classmethod
    def _as_in_chat(cls, value: Any) -> Any:
        """Return the keys of a tool with the defaults of an environment, if the tool acts in one."""
        if not isinstance(value, Mapping) or value.get("name") != environment.KEY:
            return value
        return {"call": environment.CALL, "result": CHAT_RESULT} | {**value}

    @property
    def acts(self) -> bool:
        """Whether the calls act in the world of the task, which has a state."""
        return self.name in (*STATEFUL, environment.KEY) or own_code.is_own(self.name)

    def mistakes(self, world: str | None) -> Iterator[Mistake]:
        """Yield a mistake if the tool acts in a world, and `world`, the task's, is another or None."""
        if self.acts and world != self.name:
            if self.name == environment.KEY:
                yield "name", "the calls act in the environment of the task; name it: task.environment"
                return
            asked = f"the task's world is {world}" if world else "the task has no world"
            yield "name", f"the calls act in world {self.name}, but {asked}; set task.world to {self.name}"
        if self.name == environment.KEY and self.call != environment.CALL:
            tags = " and ".join(environment.CALL)
            yield "call", f"the calls of an environment stand between {tags}; leave it out"
