"""Tasksets of the library verifiers: `task: {environment: verifiers, taskset: "owner/name", version: 0.1.2}`.

The library makes the tasks, and scores an episode by the rewards of its task. Its toolsets answer the calls,
in this process. A taskset with an environment or a runtime of its own, such as a container, is refused: the
library's own harness plays it. The other keys of the task are fields of the taskset's configuration.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from itertools import islice
from typing import Any

import verifiers.v1 as vf
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from encore.errors import UserError, first_line
from encore.worlds.environment_class import text_of, waited
from encore.worlds.environment_session import CALL, Arguments, Refused, Schema, Session, parsed, schema

MOST = 10_000  # largest number of tasks that are read of a taskset, which may have no end


@dataclass(frozen=True)
class Call:
    """A call that a tool has answered."""

    name: str
    arguments: Arguments
    result: str


class Verifiers:
    """The tasks of an installed taskset; `version`: the version of its package that must be installed."""

    def __init__(self, taskset: str, version: str | None = None, **config: Any):
        self.name = taskset
        _check_version(taskset, version)
        self.taskset = _loaded(taskset, config)
        self.tasks = [*islice(self.taskset, MOST)]
        if not self.tasks:
            raise UserError(f"task.taskset: {taskset} has no tasks")
        self._check_task(self.tasks[0])

    @property
    def episodes(self) -> int:
        """The number of tasks, each of which is an episode."""
        return len(self.tasks)

    def tools(self) -> list[Schema]:
        return self._tools

    def session(self) -> Session:
        return VerifiersSession(self.taskset, self.tasks)

    @cached_property
    def _tools(self) -> list[Schema]:
        session = VerifiersSession(self.taskset, self.tasks)
        session.reset(0)
        return session.tools

    def _check_task(self, task: Any) -> None:
        """Raise UserError if the library's own harness alone can play the tasks."""
        hooks = [*task.hooks("reward"), *task.hooks("metric")]
        needs_runtime = [hook.__name__ for hook in hooks if _needs_runtime(hook)]
        if task.NEEDS_CONTAINER or needs_runtime:
            what = (
                f"its {needs_runtime[0]} needs a runtime" if needs_runtime else "its tasks need a container"
            )
        elif vf.environment_class(self.name) is not vf.SingleAgentEnv:
            what = "it has an environment of its own"
        elif task.data.prompt is None:
            what = "its tasks have no prompt"
        else:
            return
        raise UserError(f"task.taskset: {self.name}: {what}, which only the harness of verifiers plays")


class VerifiersSession:
    """The toolsets of one task, and the trace that its rewards read."""

    def __init__(self, taskset: Any, tasks: Sequence[Any]):
        self.taskset, self.tasks = taskset, tasks
        self.task: Any = None
        self.trace: Any = None
        self.server: Any = None
        self.tools: list[Schema] = []
        self.calls: list[Call] = []  # the calls that a tool has answered
        self.over, self.reward_of_call = False, None

    @property
    def state(self) -> str | None:
        state = self.trace.state.model_dump(mode="json", exclude={"artifacts"})
        return text_of(state) if state else None

    def reset(self, number: int) -> str:
        self.task = self.tasks[number]
        self.calls = []
        return waited(self._begun())

    def call(self, name: str, arguments: Arguments) -> str:
        text = waited(self._called(name, dict(arguments)))
        self.calls.append(Call(name, arguments, text))
        return text

    def reward(self, completion: str) -> float:
        self.trace.nodes = _nodes(self.task, completion, self.calls)
        waited(self.task.score(self.trace))
        return float(self.trace.reward)

    async def _begun(self) -> str:
        """Set up the task and its toolsets, and return its prompt."""
        data = self.task.data
        toolsets = [
            *type(self.task).toolsets(self.task.config),
            *type(self.taskset).toolsets(self.taskset.config),
        ]
        states = [toolset.state for toolset in toolsets]
        state = next((state for state in states if type(state) is not vf.State), vf.State())
        self.trace = vf.Trace.model_construct(
            task=vf.TraceTask(type=type(self.task).__name__, data=data), state=state
        )
        await self.task.setup(self.trace, None)
        self.server = MCPServer(self.taskset.config.id or "tools")
        for toolset in toolsets:
            _share(toolset, state)
            await toolset.setup()
            await toolset.setup_task(data)
            toolset.register(self.server)
        listed = await self.server.list_tools()
        self.tools = [schema(tool.name, tool.description or "", tool.input_schema) for tool in listed]
        return "\n\n".join(text for text in (data.system_prompt, data.prompt_text) if text)

    async def _called(self, name: str, arguments: Arguments) -> str:
        try:
            result = await self.server.call_tool(name, arguments)
        except ToolError as error:
            raise Refused(first_line(error)) from None
        return "\n".join(block.text for block in result.content if block.type == "text")


def _share(toolset: Any, state: Any) -> None:
    """Let a toolset read and change `state`, as the library's server does through a channel."""

    async def pull() -> Any:
        return state

    async def push(before: bytes) -> None:
        return None  # the tool has changed the state itself

    toolset._pull_state, toolset._push_state = pull, push


def _nodes(task: Any, completion: str, calls: Sequence[Call]) -> list[Any]:
    """Return the messages of a trace: a task's prompt, and a completion with its calls and their results.

    A call that no tool has answered, such as one that is malformed, remains text.
    """
    *turns, last = completion.split(CALL[1])
    messages: list[tuple[Any, bool]] = [(vf.UserMessage(content=task.data.prompt_text), False)]
    left = [*calls]
    for turn in turns:
        text, _, said = turn.rpartition(CALL[0])
        name, arguments, _ = parsed(said)
        if not left or (name, arguments) != (left[0].name, left[0].arguments):
            messages.append((vf.AssistantMessage(content=turn + CALL[1]), True))
            continue
        call, number = left.pop(0), str(len(messages))
        asked = vf.ToolCall(id=number, name=call.name, arguments=text_of(dict(call.arguments)))
        messages.append((vf.AssistantMessage(content=text, tool_calls=[asked]), True))
        messages.append((vf.ToolMessage(tool_call_id=number, name=call.name, content=call.result), False))
    messages.append((vf.AssistantMessage(content=last), True))
    return [
        vf.MessageNode(parent=place - 1 if place else None, message=message, sampled=sampled)
        for place, (message, sampled) in enumerate(messages)
    ]


def _loaded(taskset: str, config: Arguments) -> Any:
    """Return the taskset. Raises UserError if it is not installed, or refuses its configuration."""
    try:
        return vf.load_taskset(vf.taskset_config_type(taskset)(id=taskset, **config))
    except ValidationError as error:
        wrong = error.errors()[0]
        key = ".".join(map(str, wrong["loc"]))
        raise UserError(f"task.{key}: taskset {taskset}: {wrong['msg']}") from None
    except (ModuleNotFoundError, AttributeError, TypeError, ValueError) as error:
        raise UserError(f"task.taskset: {taskset}: {first_line(error)}") from None


def _check_version(taskset: str, version: str | None) -> None:
    """Raise UserError unless the taskset's package is installed in this version, if one is asked for."""
    if version is None:
        return
    package = taskset.rsplit("/", 1)[-1].split("@", 1)[0]
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        installed = "none"
    if installed != version:
        raise UserError(
            f"task.version: {version} of {package} is asked for, and {installed} is installed; "
            f"`pip install {package}=={version}`"
        )


def _needs_runtime(hook: Any) -> bool:
    parameter = inspect.signature(hook).parameters.get("runtime")
    return parameter is not None and parameter.default is parameter.empty
