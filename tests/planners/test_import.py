from __future__ import annotations

import subprocess
import sys

import headrace.planners


def test_importing_the_planners_loads_nothing_heavy() -> None:
    code = "import sys, headrace.planners; print('networkx' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_public_names_are_sorted_and_there() -> None:
    names = headrace.planners.__all__
    assert names == sorted(names)
    assert all(hasattr(headrace.planners, name) for name in names)
