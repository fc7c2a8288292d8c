r"""All strings over a few letters, and tabular policies over them.

A string ends with the end token, or with its last letter once it has the most letters. Two letters and
strings of at most three tokens make 15 strings: `.`, `a.`, `b.`, `aa.` … `bbb`. A policy is a table of logits
with a row for each prefix, so that every distribution over the strings is a policy:

    log \pi(s) = \sum_t log softmax(logits[prefix_t])[token_t]

Tensors are float64. S strings have at most T tokens; there are P prefixes and V tokens.
"""

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

LETTERS = "abcdefgh"
END = "."


@dataclass(frozen=True)
class Strings:
    """All strings, padded on the right with token 0 at prefix 0."""

    texts: tuple[str, ...]  # (S)
    tokens: Tensor  # (S, T) of int64
    prefixes: Tensor  # (S, T) of int64: the row of the table that the token is drawn from
    mask: Tensor  # (S, T) 1 at real tokens
    shape: tuple[int, int]  # (P, V), the shape of a policy's logits

    def log_probs(self, logits: Tensor) -> Tensor:
        """Return log pi of each token: (P, V) -> (S, T), 0 at padding."""
        return logits.log_softmax(dim=1)[self.prefixes, self.tokens] * self.mask

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probability of each string: (P, V) -> (S,)."""
        return self.log_probs(logits).sum(dim=1).exp()

    def scores(self, logits: Tensor) -> Tensor:
        """Return the gradient of log pi of each token by the logits: (P, V) -> (S, T, P V)."""
        rows, columns = self.shape
        ones = torch.eye(rows * columns, dtype=torch.float64).view(rows, columns, -1)  # (P, V, P V)
        means = torch.einsum("pv,pvk->pk", logits.softmax(dim=1), ones)  # (P, P V)
        return (ones[self.prefixes, self.tokens] - means[self.prefixes]) * self.mask[..., None]

    def by_prefix(self, values: Tensor) -> Tensor:
        """Return the sum of `values` (S, T) over all strings that go through each prefix: (P,)."""
        total = torch.zeros(self.shape[0], dtype=torch.float64)
        return total.index_add(0, self.prefixes.flatten(), (values * self.mask).flatten())

    def policy(self, log_probabilities: Tensor) -> Tensor:
        """Return the logits (P, V) of the policy that has these log-probabilities of strings, (S,)."""
        rows, columns = self.shape
        cells = (self.prefixes * columns + self.tokens).flatten()
        masses = (log_probabilities.exp()[:, None] * self.mask).flatten()
        total = torch.zeros(rows * columns, dtype=torch.float64).index_add(0, cells, masses)
        return total.view(rows, columns).log()


def every(letters: int, longest: int) -> Strings:
    """Return all strings of the first `letters` letters that have at most `longest` tokens."""
    alphabet = LETTERS[:letters]
    beginnings = ["".join(parts) for size in range(longest) for parts in product(alphabet, repeat=size)]
    rows = {text: row for row, text in enumerate(beginnings)}
    texts = [text + END for text in beginnings]
    texts += ["".join(parts) for parts in product(alphabet, repeat=longest)]
    tokens = torch.zeros(len(texts), longest, dtype=torch.long)
    prefixes, mask = torch.zeros_like(tokens), torch.zeros(len(texts), longest, dtype=torch.float64)
    for row, text in enumerate(texts):
        for t, letter in enumerate(text):
            tokens[row, t] = (alphabet + END).index(letter)
            prefixes[row, t] = rows[text[:t]]
            mask[row, t] = 1
    return Strings(tuple(texts), tokens, prefixes, mask, (len(beginnings), letters + 1))
