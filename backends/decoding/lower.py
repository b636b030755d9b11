"""Any draft's JSON schema in the one form that automata read.

The form is a small part of 2020-12: local references become ``#/$defs/...``, formats become
patterns, tuples become ``prefixItems``. What it cannot say is left out and recorded, so that the
form never refuses what the schema accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

from ...middleware.errors import InvalidRequest, UnsupportedConstraint
from .chains import check_chain
from .drafts import DRAFTS
from .keywords import Node, Schema, escaped

MAX_DEPTH = 100
MAX_SCHEMAS = 20_000
MAX_VALUES = 50_000  # of all enums together


@dataclass(frozen=True)
class Relax:
    """What an automaton has refused, and therefore is left out next time."""

    one_of: bool = False
    pattern_properties: bool = False
    counts: bool = False
    multiples: bool = False
    inline: bool = False
    siblings: bool = False
    rewrites: bool = False
    patterns: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()  # definitions that no value fits


@dataclass
class Lowering:
    """One pass over a schema. ``residual`` collects what was left out, by JSON pointer.

    ``places`` are the JSON pointers of the schemas that became definitions, by their names.
    """

    draft: str
    relax: Relax = Relax()
    residual: dict[str, None] = field(default_factory=dict[str, None])
    patterns: set[str] = field(default_factory=set[str])
    definitions: dict[str, Schema] = field(default_factory=dict[str, Schema])
    places: dict[str, str] = field(default_factory=dict[str, str])  # of definitions
    _names: dict[int, str] = field(default_factory=dict[int, str])
    _waiting: list[tuple[str, Any, Any, str]] = field(
        default_factory=list[tuple[str, Any, Any, str]]
    )
    _options: list[list[Schema]] = field(default_factory=list[list[Schema]])
    _held: list[Any] = field(default_factory=list[Any])
    _num_root: int = 0  # references to the whole schema
    _schemas: int = 0
    _values: int = 0

    def __call__(self, root: Schema) -> Schema:
        """Return the lowered schema, with its definitions."""
        from jsonschema_specifications import REGISTRY
        from referencing import Resource
        from referencing.jsonschema import DRAFT202012

        if isinstance(root, bool):
            return root
        resource = Resource.from_contents(root, default_specification=DRAFT202012)
        resolver = cast("Any", REGISTRY).resolver_with_root(resource)
        top = self.define(root, resolver, "")
        while self._waiting:
            name, contents, within, pointer = self._waiting.pop()
            self.definitions[name] = self.schema(contents, within, pointer, 0)
        self.definitions.update(dict.fromkeys(self.relax.empty & self.definitions.keys(), False))
        check_chain(top, self.definitions)
        # Copies before any of them is put in place: definitions may be options of one another.
        inlined = [[deepcopy(self._inlined(one)) for one in options] for options in self._options]
        for options, copies in zip(self._options, inlined, strict=True):
            options[:] = copies
        if self._num_root == 1:
            top = self.definitions.pop("d0")
        return {**top, "$defs": self.definitions} if isinstance(top, dict) else top

    def is_since(self, draft: str) -> bool:
        """Whether the schema's draft is this one or a later one."""
        return DRAFTS.index(self.draft) >= DRAFTS.index(draft)

    def leave(self, pointer: str, keyword: str) -> None:
        """Record that a keyword is left to the check of the finished text."""
        self.residual[f"{pointer}/{escaped(keyword)}"] = None

    def define(self, contents: Any, resolver: Any, pointer: str) -> Schema:
        """Return a reference to a schema, which is lowered once and later."""
        if isinstance(contents, bool):
            return contents
        name = self._names.get(id(contents))
        if name is None:
            name = self._names[id(contents)] = f"d{len(self._names)}"
            self.places[name] = pointer
            self._waiting.append((name, contents, resolver, pointer))
            self._held.append(contents)  # an id belongs to a living object only
        self._num_root += name == "d0"
        return {"$ref": f"#/$defs/{name}"}

    def options(self, options: list[Schema]) -> list[Schema]:
        """Return options that will be followed once to what they refer to."""
        self._options.append(options)
        return options

    def _inlined(self, option: Schema) -> Schema:
        """Follow references, so that the automaton can see whether options exclude each other."""
        for _ in range(4):
            if not isinstance(option, dict) or option.keys() != {"$ref"}:
                break
            option = self.definitions[option["$ref"][8:]]
        return option

    def schema(self, node: Any, resolver: Any, pointer: str, depth: int) -> Schema:
        """Lower one schema; ``pointer`` is where it stands."""
        if isinstance(node, bool):
            return node
        if not isinstance(node, Mapping):
            raise InvalidRequest(f"a JSON schema is an object, got {node!r:.60} at {pointer}")
        self._schemas += 1
        if depth > MAX_DEPTH:
            raise UnsupportedConstraint(
                f"the JSON schema is nested deeper than {MAX_DEPTH} levels; move parts into $defs"
            )
        if self._schemas > MAX_SCHEMAS:
            raise UnsupportedConstraint(
                f"the JSON schema has more than {MAX_SCHEMAS} parts; constrain less of it"
            )
        found = cast("Mapping[str, Any]", node)
        if any(isinstance(found.get(key), str) for key in ("$id", "id", "$schema")):
            resolver = _inside(found, resolver)
        return Node(self, found, resolver, pointer, depth).lowered()

    def count(self, values: int) -> None:
        """Count the values of enums. Raises UnsupportedConstraint when there are too many."""
        self._values += values
        if self._values > MAX_VALUES:
            raise UnsupportedConstraint(
                f"the JSON schema lists more than {MAX_VALUES} values; use a pattern instead"
            )


def _inside(node: Mapping[str, Any], resolver: Any) -> Any:
    from referencing import Resource
    from referencing.jsonschema import DRAFT202012

    resource = Resource.from_contents(dict(node), default_specification=DRAFT202012)
    return resolver.in_subresource(resource)
