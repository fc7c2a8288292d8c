"""The outcome that `run` of every stage returns, and the files that every stage writes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.runtime import curves, files, health, provenance, sentinel


@dataclass(frozen=True)
class Outcome:
    """The outcome of a stage. The product, a model or data, is in the folder `final` of its checkpoints."""

    metrics: dict[str, float]
    health: list[health.Check]
    fit: provenance.Fit
    flops_a_token: float
    formula: str  # text that says how floating-point operations and tokens are counted
    # the operations on only those tokens that are trained on, if other tokens are left out; `flops_a_token`
    # then lacks these operations
    training_flops: float = 0.0
    curve: Sequence[curves.Row] = ()  # the curve without times; empty if nothing is trained
    clean: Callable[[], None] = lambda: None  # removes the training state

    def write(self, out: Path, product: Path, record: dict[str, Any], started: str) -> None:
        """Write curve.csv and provenance.json, and then `out`, the metrics.json beside them.

        `out` is last, as a sign that all is there. `product`: folder of the product. `record`: the stage's
        kind, config, seed and inputs. `started`: the time when the stage began, in UTC.
        """
        steps = {step: sentinel.of_folder(path) for step, path in sentinel.kept_in(product.parent).items()}
        files.write(out.with_name("curve.csv"), curves.text(self.curve))
        files.write_json(
            out.with_name("provenance.json"),
            provenance.record(started, self.fit, self.flops_a_token, self.formula, self.training_flops),
        )
        files.write_json(
            out,
            {
                **record,
                **sentinel.of_folder(product),
                **({"steps": steps} if steps else {}),
                "metrics": self.metrics,
                "health": self.health,
            },
        )


def untrained(
    metrics: dict[str, float],
    checks: list[health.Check],
    tokens: int,
    parameters: int,
    formula: str,
    began: float,
) -> Outcome:
    """Return the outcome of a stage that makes data without training steps.

    A model of `parameters` parameters has read or written `tokens`. `began` is a time of time.perf_counter.
    """
    return Outcome(
        metrics=metrics,
        health=checks,
        fit=provenance.untrained(tokens, began),
        flops_a_token=2 * parameters,
        formula=formula,
    )
