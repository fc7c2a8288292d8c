"""Reading a completion's tags, by string searches only: in linear time, and no completion can make it raise.

The answer and the format are judged separately, like R1-Zero's two rule rewards:

| completion                                     | answer     | formatted |
|------------------------------------------------|------------|-----------|
| `<think>3+5=8</think><answer>8</answer>`       | `8`        | yes       |
| `<answer> 8 </answer>` (spaces are stripped)   | `8`        | no        |
| `3+5=8<answer>8</answer>and so on`             | `8`        | no        |
| `<answer>8</answer><answer>9</answer>`         | none       | no        |
| `<answer><answer>8</answer>` (nested)          | none       | no        |
| `<answer>8` (not closed)                       | none       | no        |
| `<think><answer>8</answer></think>`            | none       | no        |
"""

TAGS = ("<think>", "</think>", "<answer>", "</answer>")


def answer(completion: str) -> str | None:
    """The stripped text of the only `<answer>` element; None without one, or if another tag follows it."""
    head, _, rest = completion.partition("<answer>")
    body, closed, tail = rest.partition("</answer>")
    if not closed or "</answer>" in head or any(tag in body or tag in tail for tag in TAGS):
        return None
    return body.strip()


def formatted(completion: str) -> bool:
    """Whether the completion is `<think>…</think><answer>…</answer>`, each tag once, apart from spaces."""
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
    """The beginning of the answer that a prompt ends with: `<think>` and the spaces after it, or nothing."""
    head = prompt.rstrip()
    return prompt[len(head) - len("<think>") :] if head.endswith("<think>") else ""


def scratchpad(completion: str) -> str:
    """The text inside `<think>`, closed or not; without that tag, everything before the answer."""
    _, opened, rest = completion.partition("<think>")
    body = rest if opened else completion
    return body.partition("</think>")[0].partition("<answer>")[0]


def scratchpad_start(completion: str) -> int:
    """The offset of `scratchpad` in the completion."""
    return completion.find("<think>") + len("<think>") if "<think>" in completion else 0
