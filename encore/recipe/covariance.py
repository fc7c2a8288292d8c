"""The settings of Clip-Cov and KL-Cov, which hold back tokens of high covariance (arXiv 2505.22617)."""

from typing import Annotated

from pydantic import Field

from encore.recipe.base import AboveZero, Model

ShareOfTokens = Annotated[float, Field(gt=0, le=1)]


class ClipCov(Model):
    """The settings of Clip-Cov: tokens that do not learn, drawn where the covariance is in a range."""

    share: ShareOfTokens = 2e-4  # of the tokens in the loss, how many do not learn
    low: float = 1.0
    high: float = 5.0


class KlCov(Model):
    """The settings of KL-Cov: a penalty on the tokens with the highest covariance."""

    share: ShareOfTokens = 2e-4  # of the tokens in the loss, how many are penalised
    weight: AboveZero = 1.0  # of their |log pi - log pi_old|
