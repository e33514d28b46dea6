"""Settings for all tests."""

from hypothesis import HealthCheck, settings

# Timings are measured in benchmarks, never asserted in tests: a busy machine is no failure.
settings.register_profile("judgesmith", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("judgesmith")
