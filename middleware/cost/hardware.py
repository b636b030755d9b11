"""What a device can do at most.

The built-in table is ``data/hardware.toml``, each entry with its public source. ``Hardware(...)``
makes one in Python; ``read_hardware(path)`` reads a file of them.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, cast

from ..errors import InvalidRequest

_TABLE = Path(__file__).parent / "data" / "hardware.toml"
_CORE_OPS = 96e9  # FP32 operations/s of a core: AVX2, 2 FMA units, 3 GHz
_CORE_BANDWIDTH = 12.8e9  # bytes/s that one core draws: half a channel of DDR4-3200
_MAX_BANDWIDTH = 51.2e9


@dataclass(frozen=True, slots=True)
class Hardware:
    """A device's peak figures, and where they come from.

    ``bandwidth`` is in bytes/s; ``fp16``, ``fp32`` and ``int8`` are dense operations/s, None for
    int8 where 8-bit operands are no faster; ``memory`` and ``onchip`` (registers, which decide how
    often fused attention reads the KV cache again) are in bytes.

    Raises InvalidRequest for a figure that is no positive number.
    """

    name: str
    bandwidth: float
    fp16: float
    fp32: float
    memory: float
    int8: float | None = None
    onchip: float = 16 * 2**20
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("bandwidth", "fp16", "fp32", "memory", "int8", "onchip"):
            value: object = getattr(self, name)
            if value is None and name == "int8":
                continue
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0 < cast("float", value) < math.inf:
                raise InvalidRequest(
                    f"hardware {self.name!r:.60}: {name} must be a positive number, got {value!r}"
                )

    def peak(self, bits: int) -> float:
        """Return the operations/s for operands of so many bits (LLM-Viewer: the widest decides)."""
        if bits > 16:
            return self.fp32
        return self.int8 if bits <= 8 and self.int8 is not None else self.fp16


def hardware(name: str, extra: Mapping[str, Hardware] | None = None) -> Hardware:
    """Return a device by its name, whatever its case; ``extra`` comes before the built-in table.

    "cpu" is a generic one; "cpu:4" has four cores. Raises InvalidRequest for an unknown name.

    >>> hardware("a6000").bandwidth
    768000000000.0
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"hardware is a name such as A100, got {name!r:.60}")
    if found := {_key(own): one for own, one in (extra or {}).items()}.get(_key(name)):
        return found
    if cores := re.fullmatch(r"cpu:(\d{1,4})", name.strip().lower()):
        return generic_cpu(int(cores[1]))
    found = _built_in().get(_key(name))
    if found is None:
        known = ", ".join([*(extra or {}), *names()])
        raise InvalidRequest(
            f"no hardware {name!r:.60}; known: {known}, cpu:CORES; describe yours in a TOML file"
        )
    return found


def names() -> tuple[str, ...]:
    """Return the names in the built-in table."""
    return tuple(dict.fromkeys(one.name for one in _built_in().values()))


def read_hardware(path: str | Path) -> dict[str, Hardware]:
    """Read a TOML or JSON file that maps names to figures, as the built-in table does.

    Raises InvalidRequest when it cannot be read, an entry lacks a figure or has an unknown one.
    """
    path = Path(path).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
        data: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InvalidRequest(
            f"cannot read the hardware file {path}: {error.strerror or error}"
        ) from error
    except ValueError as error:
        raise InvalidRequest(f"{path} is no hardware file ({error}); write TOML or JSON") from error
    if not isinstance(data, dict) or not data:
        raise InvalidRequest(f"{path} names no hardware; write one table a device")
    found: dict[str, Hardware] = {}
    for name, entry in cast("dict[str, Any]", data).items():
        for key in (name, *_aliases(name, entry)):
            found[key] = _entry(name, entry)
    return found


def generic_cpu(num_cores: int | None = None) -> Hardware:
    """Return a guess at a CPU with so many cores, all of the machine's when None.

    AVX2 at 3 GHz and DDR4-3200: within a factor of two of most servers, and what
    ``Predictor`` corrects by what it observes.
    """
    cores = num_cores if num_cores is not None else os.cpu_count() or 1
    if cores < 1:
        raise InvalidRequest(f"a CPU has at least 1 core, got {cores}")
    ops = cores * _CORE_OPS
    bandwidth = min(cores * _CORE_BANDWIDTH, _MAX_BANDWIDTH)
    return Hardware(f"CPU, {cores} cores", bandwidth, ops, ops, 32e9, source="generic_cpu")


def named_in(text: str) -> Hardware | None:
    """Return the device that a driver's name for it speaks of, None when it is not in the table.

    >>> named_in("NVIDIA H100 PCIe"), named_in("NVIDIA GeForce RTX 4090 Laptop GPU")
    ... # doctest: +ELLIPSIS
    (Hardware(name='H100-PCIe', ...), None)
    """
    said = f"-{_key(text)}-"
    if "-laptop-" in said:  # another chip of that name
        return None
    found = [name for name in _built_in() if name != "cpu" and f"-{name}-" in said]
    return _built_in()[max(found, key=len)] if found else None


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().lower())


@cache
def _built_in() -> dict[str, Hardware]:
    return {_key(name): one for name, one in read_hardware(_TABLE).items()}


def _aliases(name: str, entry: Any) -> list[str]:
    many: Any = cast("dict[str, Any]", entry).get("aliases", []) if isinstance(entry, dict) else []
    if not isinstance(many, list) or not all(isinstance(one, str) for one in cast("Any", many)):
        raise InvalidRequest(f"hardware {name!r:.60}: aliases is a list of names, got {many!r:.60}")
    return cast("list[str]", many)


def _entry(name: str, entry: Any) -> Hardware:
    if not isinstance(entry, dict):
        raise InvalidRequest(f"hardware {name!r:.60} must be a table of figures, got {entry!r:.60}")
    given = {key: value for key, value in cast("dict[str, Any]", entry).items() if key != "aliases"}
    allowed = [field.name for field in fields(Hardware) if field.name != "name"]
    if unknown := sorted(set(given) - set(allowed)):
        raise InvalidRequest(
            f"hardware {name!r:.60} has no figure {unknown[0]!r:.40}; it has {', '.join(allowed)}"
        )
    needed = ("bandwidth", "fp16", "fp32", "memory")
    if missing := [key for key in needed if key not in given]:
        raise InvalidRequest(f"hardware {name!r:.60} lacks {', '.join(missing)}")
    return Hardware(name, **given)
