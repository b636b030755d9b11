"""Fewer sequential output tokens: plan the answer, then write its parts at the same time."""

from .budget import fitting_nodes
from .graph import Item, Node, Plan, edges
from .language import plan_pattern
from .parser import Mode, PlanParser, parse_plan
from .router import Route, forbidden, route
from .run import PlannedAnswer

__all__ = [
    "Item",
    "Mode",
    "Node",
    "Plan",
    "PlanParser",
    "PlannedAnswer",
    "Route",
    "edges",
    "fitting_nodes",
    "forbidden",
    "parse_plan",
    "plan_pattern",
    "route",
]
