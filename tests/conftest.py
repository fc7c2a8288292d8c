"""Hypothesis without a clock: a busy machine is no reason to fail. One thread: tests have tiny models."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("encore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("encore")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported
