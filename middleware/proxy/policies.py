"""What happens to the requests for some models, and what of it cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast, get_args

from ...compressors.keep import check_keep
from ...compressors.names import READERS, RERANKERS, SCORERS
from ...compressors.openai_tokens import encoding_of
from .. import parts
from ..errors import HeadraceError, InvalidRequest
from ..models import Kind, Located, is_offline, locate
from ..plan_choice import Strategy
from ..shown import nearest, shown
from ..turns import ROLES
from ..wrap_options import BUDGETS, Options


@dataclass(frozen=True, slots=True)
class Policy(Options):
    """What happens to the requests for some models: ``Options``, and what the proxy adds to them.

    ``plan`` answers in parallel parts where that pays (``headrace.Plan``). ``constrain`` checks an
    answer that a JSON schema was asked for, and asks once more when it does not keep to it.
    """

    plan: str = "off"
    constrain: bool = False

    def merged(self, given: Any, *, remote: bool = False) -> Self:
        """Return the policy with the options ``given`` put over it; see ``Options.merged``."""
        for name, value in _pairs(given) if isinstance(given, Mapping) else ():
            _check_value(name, value)
        return super(Policy, self).merged(given, remote=remote)


def read_policy(pattern: str, given: Any, /) -> Policy:
    """Return the policy of a file's table ``[models."pattern"]``.

    Raises InvalidRequest in one line, which names the policy, the key, the value and what it may
    be: for what ``Policy`` refuses, and for a model or tokenizer that is not where it is said to
    be. No weights are loaded, and the network is not asked.
    """
    try:
        for name, value in _pairs(given) if isinstance(given, Mapping) else ():
            if name in _NAMES and isinstance(value, str):
                _NAMES[name](value)
        policy = Policy.of(cast("Any", given))
        check_keep(policy.keep)
    except HeadraceError as error:
        said = " ".join(str(error).split())
        raise InvalidRequest(f"[models.{json.dumps(pattern[:60])}]: {said}") from error
    return policy


def _check_value(name: str, value: Any) -> None:
    """Say that an option's value is none. What is not said here, ``Options`` says."""
    if name in ("target_tokens", "every", "top_k"):
        least = int(name != "target_tokens")
        if value is not None and (type(value) is not int or value < least):
            raise _wrong(name, f"a whole number from {least} on", value)
    elif name in (*BUDGETS, "tools"):
        if value is not None:
            _check_share(name, value)
    elif name == "keep":
        texts = cast("Sequence[Any]", value) if isinstance(value, list) else (None,)
        if not all(isinstance(one, str) for one in texts):
            raise _wrong(name, "a list of texts", value)
    elif name == "plan":
        if value not in get_args(Strategy):
            raise _wrong(name, f"one of {', '.join(get_args(Strategy))}", value)
    elif name == "rates":
        if not isinstance(value, Mapping):
            raise _wrong(name, "a table such as { tool = 0.3 }", value)
        for role, rate in _pairs(value):
            _check_rate(role, rate)


def _check_rate(role: Any, rate: Any) -> None:
    """Say that a role's rate is none, or one of its rates by age."""
    if role not in ROLES:
        raise InvalidRequest(f"rates has no role {role!r:.40}; {nearest(role, ROLES)}")
    if not isinstance(rate, Mapping):
        _check_share(f"rates.{role}", rate)
        return
    for age, one in _pairs(rate):
        if type(age) is not int and not (isinstance(age, str) and age.isdecimal()):
            raise _wrong(f"an age in rates.{role}", "a whole number from 0 on", age)
        _check_share(f"rates.{role}.{age}", one)


def _pairs(table: Any) -> Iterable[tuple[Any, Any]]:
    return cast("Mapping[Any, Any]", table).items()


def _check_share(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise _wrong(name, "a number from 0 to 1", value)


def _wrong(name: str, what: str, value: Any) -> InvalidRequest:
    return InvalidRequest(f"{name} is {what}, got {shown(value)}")


def _check_compressor(name: str) -> None:
    kind, _, own = name.partition(":")
    if name in SCORERS:
        return
    if kind == "sentences":
        _check_method(own, "compressor", (*RERANKERS, "lexical"))
    elif kind in READERS:
        _find("compressor", own, (), "decoder")
    elif (found := _find("compressor", name, SCORERS, None)) and found.is_ready:
        try:
            _ = parts.scorer(name)  # reads from the model's configuration whether it is one
        except Exception as error:  # or whatever its damaged file makes of that
            raise InvalidRequest(f"compressor: {error}") from error


def _check_method(name: str, key: str = "method", choices: Sequence[str] = RERANKERS) -> None:
    if name in choices:
        return
    kind, _, own = name.partition(":")
    if kind == "perplexity":
        _find(key, own, (), "decoder")
    else:
        _find(key, name, choices, "encoder")


def _check_tokenizer(name: str) -> None:
    try:
        if encoding_of(name) is None:
            found = _find("tokenizer", name, ("an OpenAI model or encoding",), "tokenizer")
            if found is None or not (found.path / "tokenizer.json").is_file():
                return
        _ = parts.counter(name).count("word")
    except InvalidRequest:
        raise
    except Exception as error:  # whatever the tokenizers' library says of a damaged file
        raise InvalidRequest(f"tokenizer {name!r:.60} cannot be read: {error!s:.200}") from error


def _find(key: str, name: str, choices: Sequence[str], kind: Kind | None) -> Located | None:
    """Return where a model is on this machine, None for one that the hub may have.

    Raises InvalidRequest for a mistyped choice, a folder that holds no model, and, offline, for
    whatever is not here.
    """
    why = ""
    found: Located | None = None
    try:
        found = locate(name, kind=kind)
    except (HeadraceError, OSError, ValueError) as error:
        why = f" ({error!s:.120})"
    is_of_hub = not why and name.count("/") == 1 and not name.startswith(("/", ".", "~"))
    if found is None and (not is_of_hub or is_offline()):
        allowed = [*choices, "the name or folder of a model on this machine"]
        if not is_offline():
            allowed.append("a name on the hub (org/name)")
        raise InvalidRequest(
            f"no {key} {name!r:.60}{why}; it is {', '.join(allowed[:-1])} or {allowed[-1]}"
        )
    return found


_NAMES = {"compressor": _check_compressor, "method": _check_method, "tokenizer": _check_tokenizer}
