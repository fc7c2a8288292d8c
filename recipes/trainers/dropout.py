"""Dropout off: with it, a policy is not the policy whose log-probabilities it is compared with."""

from typing import Any

from torch import nn


def disable_dropout(model: Any) -> Any:
    """`model`, with every dropout of its modules at 0; its configuration, which is saved, as it was.

    TRL's `disable_dropout` reaches the modules of type Dropout, but not the rate that an attention layer
    keeps as a number and passes on.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name, value in list(vars(module).items()):
            if "dropout" in name and isinstance(value, float):
                setattr(module, name, 0.0)
    return model
