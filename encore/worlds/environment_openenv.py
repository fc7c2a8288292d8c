"""Environments that an OpenEnv server runs: `task: {environment: openenv, url: "http://localhost:8000"}`.

Each session is a connection of OpenEnv's client, with an instance of the environment on the server. The tools
are those that an MCP environment lists; of any other environment the one tool is `step`, whose arguments are
the fields of its action. The reward of an episode is the sum of the rewards of its steps.
"""

from functools import cached_property
from typing import Any

import requests
from openenv import GenericEnvClient

from encore.errors import UserError, first_line
from encore.worlds.environment_class import text_of
from encore.worlds.environment_session import Arguments, Refused, Schema, Session, schema

OF_MCP = ("Action", "CallToolAction", "ListToolsAction")  # titles of the action's schema in MCP environments
NOT_SHOWN = ("done", "reward", "metadata")  # fields of an observation that a policy does not see
PATIENCE = 10.0  # seconds for the schemas
STEP = "step"


class OpenEnv:
    """The environment of the server at `url`."""

    episodes = None

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        self.spare: list[Session] = []  # the connection that has listed the tools

    @cached_property
    def is_mcp(self) -> bool:
        """Whether the environment's actions are calls of tools that it lists."""
        return self._action.get("title") in OF_MCP

    def tools(self) -> list[Schema]:
        return self._tools

    def session(self) -> Session:
        self.tools()  # first, because a server may allow one connection alone
        return self.spare.pop() if self.spare else OpenEnvSession(self.url, self.is_mcp)

    @cached_property
    def _tools(self) -> list[Schema]:
        if not self.is_mcp:
            fields = {k: v for k, v in self._action.get("properties", {}).items() if k != "metadata"}
            needed = [key for key in self._action.get("required", []) if key in fields]
            parameters = {"type": "object", "properties": fields, "required": needed}
            about = self._action.get("description", "Take a step in the environment.").strip()
            return [schema(STEP, about, parameters)]
        session = OpenEnvSession(self.url, True)
        session.reset(0)
        listed = session.step({"type": "list_tools"}).observation["tools"]
        self.spare = [session]
        return [schema(t["name"], t.get("description") or "", t.get("input_schema") or {}) for t in listed]

    @cached_property
    def _action(self) -> Schema:
        """The JSON schema of an action. Raises UserError if no server answers at the address."""
        address = f"{self.url.replace('ws://', 'http://', 1).replace('wss://', 'https://', 1)}/schema"
        try:
            answer = requests.get(address, timeout=PATIENCE)
            answer.raise_for_status()
            return dict(answer.json()["action"])
        except (requests.RequestException, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"task.url: no OpenEnv server answers at {address}: {first_line(error)}; start it first"
            ) from None


class OpenEnvSession:
    """A connection to a server."""

    def __init__(self, url: str, is_mcp: bool):
        self.is_mcp, self.rewards, self.over = is_mcp, [0.0], False
        self.client = GenericEnvClient(base_url=url).sync()

    @property
    def reward_of_call(self) -> float | None:
        return self.rewards[-1]

    @property
    def state(self) -> str | None:
        return text_of(self.client.state())

    def reset(self, number: int) -> str:
        self.client.connect()
        result = self.client.reset(seed=number)
        self.rewards, self.over = [float(result.reward or 0.0)], bool(result.done)
        return _shown(result.observation)

    def call(self, name: str, arguments: Arguments) -> str:
        action = dict(arguments)
        if self.is_mcp:
            action = {"type": "call_tool", "tool_name": name, "arguments": action}
        result = self.step(action)
        self.rewards.append(float(result.reward or 0.0))
        self.over = bool(result.done)
        return _shown(result.observation)

    def step(self, action: Arguments) -> Any:
        """Return the server's result of an action. Raises Refused if the action does not fit its schema."""
        try:
            return self.client.step(action)
        except RuntimeError as error:
            # the client has one kind of error, with the server's code in its text
            if "VALIDATION_ERROR" in str(error):
                raise Refused("the arguments do not fit the tool") from None
            raise

    def reward(self, completion: str) -> float:
        return sum(self.rewards)


def _shown(observation: Arguments) -> str:
    """Return what a policy sees of an observation: its only text, or else its fields as JSON."""
    shown = {key: value for key, value in observation.items() if key not in NOT_SHOWN}
    values = [*shown.values()]
    return values[0] if len(values) == 1 and isinstance(values[0], str) else text_of(shown)
