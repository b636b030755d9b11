"""The roofline of an engine: how long it takes, what it holds, and whether a stage pays."""

from __future__ import annotations

from .families import FAMILIES, from_config
from .hardware import Hardware, generic_cpu, hardware, named_in, names, read_hardware
from .lookup import shape_of
from .operators import Operator, Pass, Precision, operators
from .predict import Observed, Prediction, Predictor, predictor_of
from .roofline import Memory, Roofline, Row, Stage
from .shape import ModelShape

__all__ = [
    "FAMILIES",
    "Hardware",
    "Memory",
    "ModelShape",
    "Observed",
    "Operator",
    "Pass",
    "Precision",
    "Prediction",
    "Predictor",
    "Roofline",
    "Row",
    "Stage",
    "from_config",
    "generic_cpu",
    "hardware",
    "named_in",
    "names",
    "operators",
    "predictor_of",
    "read_hardware",
    "shape_of",
]
