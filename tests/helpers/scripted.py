"""A language model that says what a test wants."""

from collections.abc import Callable

from lm_eval.api.model import LM

from encore.sampling.completion import Completion

TEMPLATE = "<user>{question}<assistant>"


class Scripted(LM):
    """Says `say(prompt, n)` for the n-th completion drawn of a prompt."""

    def __init__(self, say: Callable[[str, int], str]):
        super().__init__()
        self.say = say

    def end_with(self, also):
        """There are no tokens: what is said is complete."""

    def generate_until(self, requests, disable_tqdm=False):
        drawn: dict[str, int] = {}
        said = []
        for request in requests:
            prompt = request.args[0]
            drawn[prompt] = drawn.get(prompt, -1) + 1
            text = self.say(prompt, drawn[prompt])
            said.append(Completion(text, tokens=len(text), truncated=False))
        return said

    def loglikelihood(self, requests, **kwargs):
        raise NotImplementedError

    loglikelihood_rolling = loglikelihood
