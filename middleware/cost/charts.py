"""Line charts as SVG, nothing else needed to show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 20, 50
COLORS = ("#2563eb", "#dc2626", "#059669", "#9333ea")


@dataclass(frozen=True, slots=True)
class Line:
    """Points to draw, as a line or as marks with names. Every coordinate is positive."""

    name: str
    points: Sequence[tuple[float, float]]
    labels: Sequence[str] = ()


def chart(x_name: str, y_name: str, lines: Sequence[Line]) -> str:
    """Return an SVG element with both axes logarithmic."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    x_axis, y_axis = _decades(xs), _decades(ys)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _share(x, x_axis) * (_WIDTH - _LEFT - _RIGHT)
        up = _share(y, y_axis) * (_HEIGHT - _TOP - _BOTTOM)
        return _LEFT + across, _HEIGHT - _BOTTOM - up

    parts = [*_grid(x_axis, y_axis, place(x_axis[0], y_axis[0]), place(x_axis[1], y_axis[1]))]
    for number, line in enumerate(lines):
        color = COLORS[number % len(COLORS)]
        at = [place(x, y) for x, y in line.points]
        if line.labels:
            for (x, y), label in zip(at, line.labels, strict=True):
                parts.append(
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}">'
                    f"<title>{escape(label)}</title></circle>"
                )
        else:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
            )
        parts.append(
            f'<text x="{_LEFT + 10}" y="{_TOP + 15 + 16 * number}" fill="{color}">'
            f"{escape(line.name)}</text>"
        )
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">'
        f"{escape(x_name)}</text>"
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_name)}</text>"
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-size="12" fill="currentColor" '
        f'font-family="system-ui, sans-serif" aria-label="{escape(y_name)} by {escape(x_name)}">'
        f"{''.join(parts)}</svg>"
    )


def short(value: float) -> str:
    """Return a number with three digits and a unit prefix.

    >>> short(68719476736), short(1024), short(0.99951), short(113.78)
    ('68.7G', '1.02K', '1.00', '114')
    """
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= size * 0.9995:
            return f"{_three(value / size)}{prefix}"
    return _three(value) if value else "0"


def _three(value: float) -> str:
    digits = max(0, 2 - math.floor(math.log10(abs(value) * 1.0005)))
    return f"{value:.{min(digits, 9)}f}"


def _decades(values: Sequence[float]) -> tuple[float, float]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def _share(value: float, axis: tuple[float, float]) -> float:
    return math.log(value / axis[0]) / math.log(axis[1] / axis[0])


def _grid(
    x_axis: tuple[float, float],
    y_axis: tuple[float, float],
    low: tuple[float, float],
    high: tuple[float, float],
) -> list[str]:
    (left, bottom), (right, top) = low, high
    parts: list[str] = []
    for tick in _ticks(x_axis):
        x = left + _share(tick, x_axis) * (right - left)
        parts.append(
            f'<path d="M{x:.1f} {top}V{bottom}" stroke="#8884"/>'
            f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_tick(tick)}</text>'
        )
    for tick in _ticks(y_axis):
        y = bottom - _share(tick, y_axis) * (bottom - top)
        parts.append(
            f'<path d="M{left} {y:.1f}H{right}" stroke="#8884"/>'
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_tick(tick)}</text>'
        )
    return parts


def _ticks(axis: tuple[float, float]) -> list[float]:
    low, high = round(math.log10(axis[0])), round(math.log10(axis[1]))
    return [10.0**power for power in range(low, high + 1, 1 + (high - low) // 9)]


def _tick(value: float) -> str:
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= size * 0.99:
            return f"{value / size:.0f}{prefix}"
    return f"{value:g}"
