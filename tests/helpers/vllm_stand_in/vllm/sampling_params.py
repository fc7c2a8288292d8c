"""See vllm/__init__.py."""


class StructuredOutputsParams: ...
