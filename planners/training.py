"""Learns the router's weights from the shipped labels: ``python -m headrace.planners.training``.

Logistic regression with an L2 penalty, chosen by cross-validation; the same bytes every time.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .classifier import NUM_FEATURES, Weights, features, questions

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

SEED = 0
FOLDS = 5
PENALTIES = (0.00003, 0.0003, 0.003)
STEPS = 800


def matrix(texts: Sequence[str]) -> Floats:
    """Return a row of features a text."""
    import numpy as np

    rows = np.zeros((len(texts), NUM_FEATURES))
    for row, text in zip(rows, texts, strict=True):
        for at, value in features(text).items():
            row[at] = value
    return rows


def fit(rows: Floats, labels: Floats, penalty: float) -> tuple[Floats, float]:
    """Return weights and bias (Nesterov's accelerated gradient; the bias is not penalised).

    Weights that begin at 0 are sums of rows at every step, so that it is the rows' shares in them
    that are looked for: there are far fewer rows than features.
    """
    import numpy as np

    alike = rows @ rows.T
    shares, bias = np.zeros(len(rows)), 0.0
    last, last_bias = shares, bias
    rate = 1.0 / (0.25 * float(np.max(np.diag(alike)) + 1) + penalty)
    for step in range(STEPS):
        pull = step / (step + 3)
        ahead, ahead_bias = shares + pull * (shares - last), bias + pull * (bias - last_bias)
        error = 1 / (1 + np.exp(-(alike @ ahead + ahead_bias))) - labels
        last, last_bias = shares, bias
        shares = ahead - rate * (error / len(labels) + penalty * ahead)
        bias = ahead_bias - rate * float(np.mean(error))
    return rows.T @ shares, bias


def out_of_fold(rows: Floats, labels: Floats, penalty: float) -> Floats:
    """Return each text's probability from weights that have not seen it."""
    import numpy as np

    order = np.random.default_rng(SEED).permutation(len(labels))
    shares = np.zeros(len(labels))
    for fold in range(FOLDS):
        held = order[fold::FOLDS]
        seen = np.setdiff1d(order, held)
        weights, bias = fit(rows[seen], labels[seen], penalty)
        shares[held] = 1 / (1 + np.exp(-(rows[held] @ weights + bias)))
    return shares


def log_loss(shares: Floats, labels: Floats) -> float:
    """Return the mean negative log-likelihood."""
    import numpy as np

    right = np.where(labels == 1, shares, 1 - shares)
    return float(-np.mean(np.log(np.clip(right, 1e-9, 1))))


def train() -> tuple[Weights, dict[str, float]]:
    """Return the weights, and what cross-validation says of them."""
    import numpy as np

    texts, marks = zip(*questions(), strict=True)
    rows, labels = matrix(texts), np.array(marks, dtype=float)
    losses = {p: log_loss(out_of_fold(rows, labels, p), labels) for p in PENALTIES}
    penalty = min(losses, key=lambda p: losses[p])
    shares = out_of_fold(rows, labels, penalty)
    found, bias = fit(rows, labels, penalty)
    unit = max(abs(one) for one in map(float, found.tolist())) / 127
    steps = array("b", [round(one / unit) for one in map(float, found.tolist())])
    is_right: Any = (shares >= 0.5) == (labels == 1)
    facts = {
        "penalty": penalty,
        "log_loss": losses[penalty],
        "accuracy": sum(is_right.tolist()) / len(texts),
    }
    return Weights(steps, float(f"{unit:.9g}"), float(f"{bias:.9g}")), facts


def main() -> None:
    """Write the weights beside the labels and say how good they are."""
    made, facts = train()
    path = Path(__file__).parent / "data" / "router.json"
    path.write_text(made.to_json(), encoding="utf-8")
    sys.stderr.write(f"{path}: {facts}\n")


if __name__ == "__main__":
    main()
