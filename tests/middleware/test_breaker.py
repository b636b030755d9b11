"""The circuit of one engine: open, probed, closed."""

from __future__ import annotations

import pytest

from headrace import InvalidRequest
from headrace.middleware.breaker import Breaker, Circuit


def test_the_circuit_opens_probes_and_closes() -> None:
    circuit = Circuit(Breaker(failures=2, seconds=10))
    assert not circuit.failed(0, is_probe=False)
    assert circuit.failed(0, is_probe=False)
    assert circuit.wait(4) == 6
    assert circuit.wait(10) == 0
    assert circuit.enter()  # the probe
    assert circuit.wait(10) > 0  # nobody else
    assert circuit.failed(11, is_probe=True)
    assert circuit.wait(11) == 20  # twice as long
    assert circuit.wait(31) == 0
    assert circuit.enter()
    circuit.leave()  # its caller gave up: nothing is known
    assert circuit.wait(31) == 0
    assert circuit.enter()
    circuit.succeeded()
    assert circuit.wait(31) == 0
    assert not circuit.enter()
    assert not circuit.failed(31, is_probe=False)


def test_the_pause_is_bounded() -> None:
    circuit = Circuit(Breaker(failures=1, seconds=10, longest=40))
    circuit.failed(0, is_probe=False)
    for _ in range(60):
        circuit.enter()
        circuit.failed(0, is_probe=True)
    assert circuit.wait(0) == 40


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"seconds": 0}, {"seconds": 9, "longest": 5}])
def test_a_breaker_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest):
        Breaker(**wrong)
