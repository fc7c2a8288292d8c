"""Episodes of a server of OpenEnv, on loopback, with the library's own client and server."""

import json
import random
import socket
import threading
import time

import pytest

pytest.importorskip("openenv")
import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_app
from openenv.core.env_server.mcp_environment import MCPEnvironment

from encore.errors import UserError
from encore.worlds import make
from encore.worlds.environment import CALL
from encore.worlds.episodes import observe
from encore.worlds.protocol import Problem


class Guess(Action):
    """Guess the number."""

    number: int


class Told(Observation):
    told: str = ""


class Guessing(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **further):
        self.secret, self.steps = random.Random(seed).randint(0, 9), 0
        return Told(told="I think of a number.")

    def step(self, action, timeout_s=None, **further):
        if action.number < 0:
            raise RuntimeError("the server is at its end")
        self.steps += 1
        done = action.number == self.secret
        told = "right" if done else "more" if action.number < self.secret else "less"
        return Told(told=told, done=done, reward=float(done))

    @property
    def state(self):
        return State(step_count=self.steps)


class Moody(Guessing):
    def reset(self, seed=None, episode_id=None, **further):
        return super().reset(None)


class Tools(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        from fastmcp import FastMCP

        server = FastMCP("tools")

        @server.tool
        def double(number: int) -> int:
            """Double a number."""
            return 2 * number

        super().__init__(server)

    def reset(self, seed=None, episode_id=None, **further):
        return Observation()

    def _step_impl(self, action, timeout_s=None, **further):
        raise NotImplementedError

    @property
    def state(self):
        return State()


def served(environment, action, observation, most: int = 16) -> str:
    """The address of a server of an environment for `most` connections, until the process ends."""
    app = create_app(environment, action, observation, max_concurrent_envs=most)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="module")
def guessing() -> str:
    return served(Guessing, Guess, Told)


def call(number: object, name: str = "step") -> str:
    return json.dumps({"name": name, "arguments": {"number": number}})


def of(number: int) -> Problem:
    return Problem(f"(episode {number})", "", 0, number=number)


def test_an_episode_is_played_and_paid(guessing):
    world = make({"environment": "openenv", "url": guessing})
    (schema,) = world.tools()
    assert schema["function"]["parameters"]["required"] == ["number"]
    assert "metadata" not in schema["function"]["parameters"]["properties"]
    assert world.problem(random.Random(1)).question.startswith("I think of a number.\n\n(episode ")
    right = random.Random(7).randint(0, 9)
    wrong = (right + 1) % 10
    texts = [call(wrong), call(right), call(right)]
    turns = [observe(world, "(episode 7)", texts[: k + 1]) for k in range(3)]
    assert [turn.observation for turn in turns][1:] == ["right", "over"]
    assert [turn.reward for turn in turns] == [0.0, 1.0, None]
    assert json.loads(turns[1].shown)["step_count"] == 2
    completion = "".join(f"{CALL[0]}{text}{CALL[1]}" for text in texts)
    assert world.reward(of(7), completion) == 1.0
    assert world.verify(of(7), completion)
    assert not world.verify(of(7), f"{CALL[0]}{call(wrong)}{CALL[1]}")


def test_mistakes_of_the_policy_are_told_to_it_and_those_of_the_server_end_the_job(guessing):
    world = make({"environment": "openenv", "url": guessing, "sessions": 2})
    assert observe(world, "(episode 7)", [call("many")]).observation.startswith("error: the arguments")
    assert observe(world, "(episode 7)", [call(1, "leap")]).observation.startswith('error: no tool "leap"')
    with pytest.raises(UserError, match=r"episode 7, call 1: RuntimeError: .*the server is at its end"):
        observe(world, "(episode 7)", [call(-1)])


def test_an_environment_without_a_seed_is_refused():
    world = make({"environment": "openenv", "url": served(Moody, Guess, Told)})

    def play() -> None:
        for number in range(8):
            completion = "".join(f"{CALL[0]}{call(guess)}{CALL[1]}" for guess in range(0, 10, 2))
            world.reward(of(number), completion)

    with pytest.raises(UserError, match="when played again; an environment must follow"):
        play()


def test_the_tools_of_an_mcp_environment_are_the_policys():
    from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation

    world = make({"environment": "openenv", "url": served(Tools, CallToolAction, CallToolObservation)})
    (schema,) = world.tools()
    assert schema["function"]["name"] == "double"
    assert schema["function"]["description"] == "Double a number."
    turn = observe(world, "(episode 0)", [call(21, "double")])
    assert "42" in turn.observation


def test_a_server_for_one_connection_is_enough():
    """The connection that lists the tools plays the first episode."""
    from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation

    url = served(Tools, CallToolAction, CallToolObservation, most=1)
    world = make({"environment": "openenv", "url": url, "sessions": 1})
    turns = [observe(world, f"(episode {number})", [call(number, "double")]) for number in (3, 4)]
    assert "6" in turns[0].observation
    assert "8" in turns[1].observation


def test_no_server_is_one_line():
    with pytest.raises(UserError, match=r"no OpenEnv server answers at http://127.0.0.1:9/schema") as told:
        make({"environment": "openenv", "url": "http://127.0.0.1:9"}).tools()
    assert "\n" not in str(told.value)
