"""Free TCP ports, on which the processes of a stage meet or its vLLM server listens."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """Return `count` different ports of this machine that are free now."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("", 0))
        return [each.getsockname()[1] for each in sockets]
