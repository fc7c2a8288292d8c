"""An lm-eval model of our own decoder for small models, in less than half the time of `generate`."""

from lm_eval.api.instance import Instance
from lm_eval.models.utils import normalize_gen_kwargs

from encore.errors import UserError
from encore.sampling.decoding import sample
from encore.sampling.hf import HuggingFaceSampler, Options


class LeanSampler(HuggingFaceSampler):
    """A sampler without top-p and stop strings: it draws from the full distribution, or greedily."""

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        options: Options = dict(normalize_gen_kwargs(requests[0].args[1]))
        limit, temperature = options["max_gen_toks"], options["temperature"]
        if options.get("top_p", 1.0) != 1.0 or options["until"]:
            raise UserError(
                "evals.backend: lean supports neither top_p below 1 nor stop strings; use backend: hf"
            )
        if self.tool:
            return self.answered_by(self.tool, requests, options, limit)
        prompts = self.prompts(requests, limit)
        done: list[str] = []
        size = self.at_once(max(map(len, prompts)) + limit)
        for start in range(0, len(prompts), size):
            batch = prompts[start : start + size]
            drawn, _ = sample(self.model, batch, limit, temperature, sorted(self.ends))
            done += [self._completion(ids, [], prompt) for ids, prompt in zip(drawn, batch, strict=True)]
            self.report(len(done), len(prompts))
        return done

    def turn(self, contexts: list[list[int]], cap: int, also: set[int], options: Options) -> list[list[int]]:
        return sample(self.model, contexts, cap, options["temperature"], sorted(self.ends | also))[0]
