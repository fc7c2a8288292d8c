"""The reading of a completion's tags, by string searches in linear time; no completion can make it raise.

The answer and the format are judged separately, like R1-Zero's two rule rewards:

| completion                                     | answer     | formatted |
|------------------------------------------------|------------|-----------|
| `<think>3+5=8</think><answer>8</answer>`       | `8`        | yes       |
| `<answer> 8 </answer>` (spaces are stripped)   | `8`        | no        |
| `3+5=8<answer>8</answer>and so on`             | `8`        | no        |
| `<answer>8</answer><answer>9</answer>`         | no answer  | no        |
| `<answer><answer>8</answer>` (nested)          | no answer  | no        |
| `<answer>8` (not closed)                       | no answer  | no        |
| `<think><answer>8</answer></think>`            | no answer  | no        |
"""

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def answer(completion: str) -> str | None:
    """Return the stripped text of the only `<answer>` element; None without one, or if other tags follow."""
    head, _, rest = completion.partition("<answer>")
    body, closed, tail = rest.partition("</answer>")
    if not closed or "</answer>" in head or any(tag in body or tag in tail for tag in TAGS):
        return None
    return body.strip()


def formatted(completion: str) -> bool:
    """Return whether a completion is `<think>…</think><answer>…</answer>`, with each tag once.

    There may be white space before, between and after the two elements.
    """
    text = completion.strip()
    between = text.partition("</think>")[2].partition("<answer>")[0]
    return (
        text.startswith("<think>")
        and text.endswith("</answer>")
        and all(text.count(tag) == 1 for tag in TAGS)
        and text.index("</think>") < text.index("<answer>")
        and not between.strip()
    )


def begun(prompt: str) -> str:
    """Return the part of the completion that a prompt already has at its end: `<think>` and spaces, or ""."""
    head = prompt.rstrip()
    return prompt[len(head) - len("<think>") :] if head.endswith("<think>") else ""


def scratchpad(completion: str) -> str:
    """Return the text inside `<think>`, closed or not; without this tag, all text before the answer."""
    _, opened, rest = completion.partition("<think>")
    body = rest if opened else completion
    return body.partition("</think>")[0].partition("<answer>")[0]


def scratchpad_start(completion: str) -> int:
    """Return the offset at which `scratchpad` begins in the completion."""
    return completion.find("<think>") + len("<think>") if "<think>" in completion else 0
