"""Ports on which the processes of a stage meet, or a server of its own is reached."""

import contextlib
import socket


def free_ports(count: int) -> list[int]:
    """Ports of this machine that are free now, each another."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("", 0))
        return [one.getsockname()[1] for one in sockets]
