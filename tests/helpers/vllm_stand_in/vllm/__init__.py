"""Stands for vLLM 0.31 where it is not installed: the names that TRL imports, and a server on the CPU.

What TRL's client and trainer do is real: HTTP, the announcement and order of the weights, their use. In place
of NCCL, which needs GPUs, the weights go through a socket of this machine.
"""


class LLM: ...


class RequestOutput: ...


class SamplingParams: ...
