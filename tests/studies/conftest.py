"""Trials are not given up because the machine is busy."""

from tests.support.patience import patient_trials

__all__ = ["patient_trials"]
