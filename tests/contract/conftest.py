"""The fixtures of the contract suites that have several modules: the store's and the models'."""

from contract.model_speakers import speaker
from contract.test_models import ask, time
from store_suite import fresh, given, store

__all__ = ["ask", "fresh", "given", "speaker", "store", "time"]
