"""Contract tests for stores, retrievers, signals and fusions of your own; they need pytest.

Inherit the class, name it ``Test...`` and give the fixture it asks for::

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self):
            return MyStore()

A bug that a contract misses is a bug of the contract.
"""

from steelyard.testing.fusions import FusionContract
from steelyard.testing.readable import ReadableContract
from steelyard.testing.retrievers import RetrieverContract
from steelyard.testing.signals import SignalContract
from steelyard.testing.stores import StoreContract
from steelyard.testing.tables import random_table, renamed, same_bits, select_queries, select_rows

__all__ = [
    "FusionContract",
    "ReadableContract",
    "RetrieverContract",
    "SignalContract",
    "StoreContract",
    "random_table",
    "renamed",
    "same_bits",
    "select_queries",
    "select_rows",
]
