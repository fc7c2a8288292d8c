"""Hypothesis without a clock: a busy machine is no reason to fail."""

from hypothesis import HealthCheck, settings

settings.register_profile("encore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("encore")
