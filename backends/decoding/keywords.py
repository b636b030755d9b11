"""What each keyword of JSON Schema becomes in the form that automata read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from ...middleware.errors import InvalidRequest, UnsupportedConstraint
from .formats import FORMATS, NOT_EXACT
from .patterns import TooLarge, Unsupported, check_size, searched, whole
from .rewrite import conditional, dependencies, evaluated, exclusive, named, negated
from .values import EXACT, is_exact, is_kind, plain

if TYPE_CHECKING:
    from .lower import Lowering

Schema = dict[str, Any] | bool
SCALARS = ("null", "boolean", "integer", "number", "string")
KINDS = (*SCALARS, "array", "object")

MAX_PROPERTIES = 2_000  # of one object
MAX_BOUND = 100_000  # items or characters; an automaton counts no further
MAX_STEP = 10_000  # of multipleOf, in its last digit: an automaton has a state for each remainder
NO_BOUND = 10_000_000  # no answer is that long
_ALL_KINDS = len(KINDS) - 1  # a number may be an integer
_UPPER = {"maxItems": "array", "maxLength": "string", "maxProperties": "object"}
_LOWER = {"minItems": "array", "minLength": "string", "minProperties": "object"}


def _significant(step: float) -> int:
    """Return a number's significant digits as a whole one: what an automaton of multiples counts.

    >>> _significant(0.07), _significant(300.5), _significant(1000)
    (7, 3005, 1)
    """
    return int("".join(map(str, Decimal(str(step)).normalize().as_tuple().digits)))


def escaped(step: str) -> str:
    """Write a name as a step of a JSON pointer (RFC 6901)."""
    return step.replace("~", "~0").replace("/", "~1")


@dataclass
class Node:
    """One schema being lowered."""

    owner: Lowering
    node: Mapping[str, Any]
    resolver: Any
    pointer: str
    depth: int

    def lowered(self) -> Schema:
        """Return the schema in the form that automata read."""
        node, owner = self.node, self.owner
        if "$ref" in node and not owner.is_since("2019-09"):
            return self._ref("$ref")  # its siblings mean nothing in these drafts
        kinds = self._kinds()
        if not kinds:
            return False
        out: dict[str, Any] = {}
        extra: list[Any] = []  # schemas that must hold too, from keywords the form has not
        if "$ref" in node:
            target = self._ref("$ref")
            if target is False:
                return False
            out.update({} if target is True else target)
        if len(kinds) < _ALL_KINDS:
            out["type"] = kinds
        if not self._values(out, kinds):
            return False
        if "string" in kinds:
            self._strings(out, extra)
        if {"number", "integer"} & {*kinds}:
            self._numbers(out)
        if "array" in kinds and not self._arrays(out):
            kinds.remove("array")
        if "object" in kinds:
            self._objects(out, extra)
        if "type" in out:
            out["type"] = kinds
        return self._combined(out, extra)

    def leave(self, keyword: str) -> None:
        """Record that a keyword of this schema is left to the check of the finished text."""
        self.owner.leave(self.pointer, keyword)

    def sub(self, schema: Any, *steps: str) -> Schema:
        """Lower a schema inside this one; ``steps`` lead to it."""
        pointer = self.pointer + "".join(f"/{escaped(step)}" for step in steps)
        return self.owner.schema(schema, self.resolver, pointer, self.depth + 1)

    def _ref(self, keyword: str) -> Schema:
        from referencing.exceptions import Unresolvable

        ref = self.node[keyword]
        try:
            found = self.resolver.lookup(ref)
        except (Unresolvable, ValueError, TypeError) as error:
            raise InvalidRequest(
                f"the schema's {keyword} {ref!r:.80} leads nowhere in the schema; put what it "
                "means under $defs (nothing is fetched)"
            ) from error
        base, _, fragment = str(ref).partition("#")
        pointer = unquote(fragment) if not base and fragment[:1] in ("", "/") else str(ref)
        return self.owner.define(found.contents, found.resolver, pointer)

    def _kinds(self) -> list[str]:
        given = self.node.get("type")
        kinds = [given] if isinstance(given, str) else [*(given or KINDS)]
        if "number" in kinds and "integer" in kinds:
            kinds.remove("integer")
        values = self._listed()
        if values is not None:
            kinds = [kind for kind in kinds if any(is_kind(value, kind) for value in values)]
        return kinds

    def _listed(self) -> list[Any] | None:
        if "const" in self.node and self.owner.is_since("draft6"):
            return [self.node["const"]]
        return self.node.get("enum")

    def _values(self, out: dict[str, Any], kinds: Sequence[str]) -> bool:
        values = self._listed()
        if values is None:
            return True
        self.owner.count(len(values))
        kept = [value for value in values if any(is_kind(value, kind) for kind in kinds)]
        if any(not is_exact(value) for value in kept):
            self.leave("const" if "const" in self.node else "enum")
        else:
            out["enum"] = [plain(value) for value in kept]
        if "const" in self.node and "enum" in self.node:
            self.leave("enum")
        return bool(kept)

    def _bounds(self, out: dict[str, Any], kind: str) -> None:
        for keyword, of in {**_UPPER, **_LOWER}.items():
            bound = self.node.get(keyword)
            if of != kind or bound is None:
                continue
            if bound <= MAX_BOUND:
                out[keyword] = int(bound)
            elif keyword in _LOWER:
                raise UnsupportedConstraint(
                    f"{keyword} {bound} is more than an answer can have; keep it <= {MAX_BOUND}"
                )
            elif bound <= NO_BOUND:
                self.leave(keyword)

    def _strings(self, out: dict[str, Any], extra: list[Any]) -> None:
        self._bounds(out, "string")
        if (pattern := self.node.get("pattern")) is not None:
            self._pattern(pattern, "pattern", extra)
        name = self.node.get("format")
        if name is None or "enum" in out:
            if name is not None:
                self.leave("format")
            return
        if name in FORMATS:
            self.owner.patterns.add(FORMATS[name])
            if FORMATS[name] in self.owner.relax.patterns:
                self.leave("format")
            else:
                extra.append({"pattern": f"^(?:{FORMATS[name]})$"})
        if name not in FORMATS or name in NOT_EXACT:
            self.leave("format")

    def _pattern(self, pattern: str, keyword: str, extra: list[Any]) -> None:
        try:
            rust = whole(pattern)
        except Unsupported:
            self._check_pattern(pattern)
            self.leave(keyword)
            return
        self.owner.patterns.add(rust)
        if rust in self.owner.relax.patterns:
            self.leave(keyword)
        else:
            extra.append({"pattern": f"^{rust}$"})

    def _check_pattern(self, pattern: str) -> None:
        import regex

        try:
            check_size(pattern)  # a backtracking engine writes counts out: it would take gigabytes
            regex.compile(searched(pattern), flags=regex.VERSION1)
        except TooLarge as error:
            raise UnsupportedConstraint(
                f"the pattern {pattern!r:.60} at {self.pointer or '/'} has {error}"
            ) from error
        except (Unsupported, regex.error) as error:
            raise InvalidRequest(
                f"the pattern {pattern!r:.60} at {self.pointer or '/'} cannot be read: {error}"
            ) from error

    def _numbers(self, out: dict[str, Any]) -> None:
        for limit, exclusive_ in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            bound, strict = self.node.get(limit), self.node.get(exclusive_)
            if isinstance(strict, bool):  # draft 4
                strict, bound = (bound, None) if strict else (None, bound)
            for keyword, value in ((limit, bound), (exclusive_, strict)):
                if value is None:
                    continue
                if abs(value) <= EXACT:
                    out[keyword] = plain(value)
                else:
                    self.leave(keyword)
        self._strict_wholes(out)
        if (step := self.node.get("multipleOf")) is not None:
            is_small = 1e-9 <= step <= 1e9 and _significant(step) <= MAX_STEP
            if is_small and not self.owner.relax.multiples:
                out["multipleOf"] = plain(step)
            else:
                self.leave("multipleOf")

    def _strict_wholes(self, out: dict[str, Any]) -> None:
        """Leave a strict whole bound whose other bound is less than 1 away.

        llguidance takes the bound itself there: 0 for numbers above 0 and up to 0.5.
        """
        for strict, weak, others, sign in (
            ("exclusiveMinimum", "minimum", ("maximum", "exclusiveMaximum"), 1),
            ("exclusiveMaximum", "maximum", ("minimum", "exclusiveMinimum"), -1),
        ):
            bound = out.get(strict)
            if bound is None or bound != int(bound):
                continue
            if any(0 <= sign * (out[one] - bound) < 1 for one in others if one in out):
                del out[strict]
                own = [bound, *([out[weak]] if weak in out else [])]
                out[weak] = max(own) if sign > 0 else min(own)
                self.leave(strict)

    def _arrays(self, out: dict[str, Any]) -> bool:
        node, owner = self.node, self.owner
        self._bounds(out, "array")
        if out.get("minItems", 0) > out.get("maxItems", MAX_BOUND):
            return False
        items: Any = node.get("items")
        prefix: Any = node.get("prefixItems")
        first, rest = "prefixItems", "items"
        if not owner.is_since("2020-12"):
            prefix = None
            if isinstance(items, list):
                prefix, items = cast("Any", items), node.get("additionalItems")
                first, rest = "items", "additionalItems"
        if rest not in node and self._is_only_one("unevaluatedItems"):
            items, rest = node["unevaluatedItems"], "unevaluatedItems"
        if prefix:
            out["prefixItems"] = [self.sub(one, first, str(i)) for i, one in enumerate(prefix)]
        if items is not None:
            out["items"] = self.sub(items, rest)
        if node.get("uniqueItems") is True and out.get("maxItems", 2) > 1:
            self.leave("uniqueItems")
        if "contains" in node and owner.is_since("draft6"):
            self.leave("contains")
        is_left = node.get("unevaluatedItems", True) is not True and rest != "unevaluatedItems"
        if owner.is_since("2019-09") and is_left:
            self.leave("unevaluatedItems")
        return True

    def _is_only_one(self, keyword: str) -> bool:
        """Whether a keyword about what is not evaluated is about what this schema leaves open."""
        return (
            keyword in self.node
            and self.owner.is_since("2019-09")
            and evaluated(self.node, keyword)
        )

    def _objects(self, out: dict[str, Any], extra: list[Any]) -> None:
        node, owner = self.node, self.owner
        self._bounds(out, "object")
        properties = cast("Mapping[str, Any]", node.get("properties") or {})
        if len(properties) > MAX_PROPERTIES:
            raise UnsupportedConstraint(
                f"an object of the JSON schema has {len(properties)} properties; keep it "
                f"<= {MAX_PROPERTIES}"
            )
        if "properties" in node:
            out["properties"] = {k: self.sub(v, "properties", k) for k, v in properties.items()}
        if node.get("required"):
            out["required"] = [*dict.fromkeys(node["required"])]
        rest = "additionalProperties"
        if rest not in node and self._is_only_one("unevaluatedProperties"):
            rest = "unevaluatedProperties"
        elif owner.is_since("2019-09") and node.get("unevaluatedProperties", True) is not True:
            self.leave("unevaluatedProperties")
        if rest in node and (lowered := self.sub(node[rest], rest)) is not True:
            out["additionalProperties"] = lowered
        if node.get("patternProperties"):
            self._pattern_properties(out)
        if "propertyNames" in node and owner.is_since("draft6"):
            names = node["propertyNames"]
            is_said = not owner.relax.pattern_properties and named(out, names)
            if not is_said and names not in (True, {}):
                self.leave("propertyNames")
        self._counts(out)

    def _pattern_properties(self, out: dict[str, Any]) -> None:
        lowered: dict[str, Schema] = {}
        given = cast("Mapping[str, Any]", self.node["patternProperties"])
        for pattern, schema in given.items():
            below = self.sub(schema, "patternProperties", pattern)
            try:
                name = f"^{whole(pattern)}$"
                lowered[name] = {"allOf": [lowered[name], below]} if name in lowered else below
            except Unsupported:
                self._check_pattern(pattern)
                lowered = {}
                break
        if lowered and not self.owner.relax.pattern_properties:
            out["patternProperties"] = lowered
            return
        self.leave("patternProperties")
        if out.pop("additionalProperties", True) is not True:  # it means what no pattern matches
            self.leave("additionalProperties")

    def _counts(self, out: dict[str, Any]) -> None:
        """Leave what automata count wrongly: to them a name that is written twice is two."""
        is_open = out.get("additionalProperties") is not False or "patternProperties" in out
        needed = out.get("minProperties", 0) - len(out.get("required", ()))
        for keyword in ("minProperties", "maxProperties"):
            if keyword in out and self.owner.relax.counts:
                del out[keyword]
                self.leave(keyword)
            elif keyword == "minProperties" and needed > 1 and is_open:
                self.leave(keyword)

    def _combined(self, out: dict[str, Any], extra: list[Any]) -> Schema:
        node, owner = self.node, self.owner
        every: list[Schema] = [*extra]
        for at, one in enumerate(node.get("allOf") or ()):
            every.append(self.sub(one, "allOf", str(at)))
        rewritten = self._rewritten()
        every += [self.sub(schema, keyword) for keyword, schema in rewritten]
        if any(one is False for one in every):
            return False
        if "anyOf" in node:
            out["anyOf"] = [self.sub(s, "anyOf", str(i)) for i, s in enumerate(node["anyOf"])]
        if "oneOf" in node and "oneOf" not in dict(rewritten):
            options = [self.sub(s, "oneOf", str(i)) for i, s in enumerate(node["oneOf"])]
            if owner.relax.one_of:
                self.leave("oneOf")
                if "anyOf" in out:
                    every.append({"anyOf": options})
                else:
                    out["anyOf"] = options
            else:
                out["oneOf"] = owner.options(options)
        every = [one for one in every if one is not True and one != {}]
        if every:
            out["allOf"] = every
        if owner.relax.inline and len(out) > 1:
            for keyword in ("allOf", "anyOf"):
                owner.options(out.get(keyword, []))
            if "$ref" in out and "allOf" not in out:
                out["allOf"] = owner.options([{"$ref": out.pop("$ref")}])
        if owner.relax.siblings and "$ref" in out and len(out) > 1:
            self.leave("$ref")
            del out["$ref"]
        # The order of keywords is the order in which an answer has the properties.
        keywords = [*node]
        own = keywords.index("properties") if "properties" in node else len(keywords)
        first = [key for key in keywords[:own] if key in ("$ref", "allOf", "anyOf", "oneOf")]
        return {key: out[key] for key in (*first, *out) if key in out}

    def _rewritten(self) -> list[tuple[str, Any]]:
        """Say keywords that the form has not in other words; those that have none are left."""
        node, owner = self.node, self.owner
        found: list[tuple[str, Any]] = []
        todo: list[tuple[str, Any]] = []
        if "not" in node:
            todo.append(("not", negated(node["not"])))
        if "if" in node and owner.is_since("draft7") and {"then", "else"} & node.keys():
            todo.append(("if", conditional(node)))
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            if node.get(keyword) and (keyword == "dependencies" or owner.is_since("2019-09")):
                todo.append((keyword, dependencies(node[keyword])))
        if "oneOf" in node and not owner.relax.rewrites:
            one = exclusive(node["oneOf"])
            todo += [("oneOf", one)] if one is not None else []
        for keyword, schema in todo:
            if schema is None or owner.relax.rewrites:
                self.leave(keyword)
            else:
                found.append((keyword, schema))
        for keyword in ("$dynamicRef", "$recursiveRef"):
            if keyword in node and owner.is_since("2019-09"):
                self.leave(keyword)
        return found
