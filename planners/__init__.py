"""Fewer sequential output tokens: plan the answer, then write its parts at the same time."""

from .budget import fitting_nodes
from .gate import Gate
from .graph import Item, Node, Plan, edges
from .known import KnownEngine
from .language import plan_pattern
from .parser import Mode, PlanParser, parse_plan
from .router import Route, forbidden, route
from .run import PlannedAnswer
from .speed import StepCost

__all__ = [
    "Gate",
    "Item",
    "KnownEngine",
    "Mode",
    "Node",
    "Plan",
    "PlanParser",
    "PlannedAnswer",
    "Route",
    "StepCost",
    "edges",
    "fitting_nodes",
    "forbidden",
    "parse_plan",
    "plan_pattern",
    "route",
]
