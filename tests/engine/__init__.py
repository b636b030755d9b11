"""A simulated engine on a virtual clock, for tests about scheduling (never about text quality).

from engine import Reply, SimulatedEngine, handler, run_virtual
"""

from .asking import collect, outcome
from .clock import Stuck, VirtualLoop, run_virtual
from .planned import PLAIN, calls_of, planned
from .simulated import Cost, Record, Reply, SimulatedEngine, handler

__all__ = [
    "PLAIN",
    "Cost",
    "Record",
    "Reply",
    "SimulatedEngine",
    "Stuck",
    "VirtualLoop",
    "calls_of",
    "collect",
    "handler",
    "outcome",
    "planned",
    "run_virtual",
]
