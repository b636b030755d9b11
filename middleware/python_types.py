"""Python's types as constraints; a value comes back as an instance of the type."""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from .constraints import choice, json_schema
from .errors import InvalidRequest
from .subschemas import with_subschemas
from .types import Constraint


def from_type(spec: Any) -> Constraint:
    """Return the constraint of a type, or of a function's arguments. Raises InvalidRequest."""
    if inspect.isfunction(spec) or inspect.ismethod(spec) or inspect.isbuiltin(spec):
        return _from_signature(spec)
    if type(spec).__module__.split(".")[0] == "genson":
        schema: dict[str, Any] = spec.to_schema()
        schema.pop("$schema", None)  # genson names a draft that there is not
        return json_schema(schema)
    if typing.get_origin(spec) is typing.Literal and all(
        isinstance(value, str) for value in typing.get_args(spec)
    ):
        return choice(typing.get_args(spec))
    if isinstance(spec, type) and issubclass(spec, enum.Enum):
        values: list[Any] = [member.value for member in spec]
        if all(isinstance(value, str) for value in values):
            return replace(choice(values), parse=spec)
    if not isinstance(spec, type) and typing.get_origin(spec) is None:
        raise InvalidRequest(
            f"{spec!r:.80} is no constraint: pass a JSON schema, a pydantic model or another type, "
            "re.compile(...) or a list of choices"
        )
    return _from_adapter(spec)


def _from_adapter(spec: Any) -> Constraint:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        """Holds a field of an Outlines type to its whole pattern, as that type's check does."""

        def generate_inner(self, schema: Any) -> dict[str, Any]:
            made = super().generate_inner(schema)
            if "pattern" in made and _is_outlines(schema):
                made["pattern"] = f"^(?:{made['pattern']})$"
            return made

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(spec)
        schema = adapter.json_schema(schema_generator=Generator)
    except (PydanticUserError, NameError, TypeError) as error:
        first = str(error).partition("\n")[0]
        raise InvalidRequest(f"{spec!r:.80} has no JSON schema: {first:.160}") from None
    return json_schema(closed(schema), adapter.validate_json)


def _is_outlines(schema: Mapping[str, Any]) -> bool:
    metadata = cast("Mapping[str, Any]", schema.get("metadata") or {})
    hooks = cast("Sequence[Any]", metadata.get("pydantic_js_functions", ()))
    owners = (getattr(hook, "__self__", None) for hook in hooks)
    return any(type(owner).__module__.split(".")[0] == "outlines" for owner in owners)


def _from_signature(function: Callable[..., Any]) -> Constraint:
    """Take a function's arguments as an object: ``function(**response.parsed)`` is the call."""
    from pydantic import create_model

    name = function.__name__
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError) as error:
        raise InvalidRequest(f"the arguments of {name} cannot be read: {error}") from None
    fields: dict[str, Any] = {}
    for one in parameters.values():
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise InvalidRequest(
                f"{name} takes {one}, which cannot be passed by its name; wrap it in a function "
                "whose arguments all can"
            )
        if one.name not in hints:
            raise InvalidRequest(f"{name} needs a type for its argument {one.name!r}")
        fields[one.name] = (hints[one.name], ... if one.default is one.empty else one.default)
    # Aliases: a model may not have a field that begins with an underscore or is called "schema".
    from pydantic import Field

    aliased = {
        f"field_{at}": (kind, Field(default, alias=key))
        for at, (key, (kind, default)) in enumerate(fields.items())
    }
    made = _from_adapter(cast("Any", create_model)(name, **aliased))
    read = cast("Callable[[str], Any]", made.parse)

    def arguments(text: str) -> dict[str, Any]:
        model = read(text)
        return {key: getattr(model, own) for key, own in zip(fields, aliased, strict=True)}

    return replace(made, parse=arguments)


def closed(schema: Any) -> Any:
    """Forbid properties that the type does not have: a model would go on inventing them."""
    if not isinstance(schema, Mapping):
        return schema
    result = with_subschemas(cast("Mapping[str, Any]", schema), closed)
    if result.get("type") == "object" and isinstance(result.get("properties"), dict):
        result.setdefault("additionalProperties", False)
    return result
