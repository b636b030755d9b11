"""What int8 costs: the shipped weights beside the float32 ones of the run they come from.

    python benchmarks/mini_quantised.py --data DATA --run RUN

RUN is the folder of a finished training. Keep probabilities on held-out SQuAD paragraphs with their
questions: mean and largest difference, and how often the two agree on which third to keep.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from headrace.compressors.mini import tensorfile
from headrace.compressors.mini.engine import Engine, Passage
from headrace.compressors.mini.weights import FILE
from headrace.compressors.training.checkpoint import NAME
from headrace.compressors.training.measuring import squad_held_out


def main() -> None:
    """Print the differences."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=60)
    options = parser.parse_args()
    state, _ = tensorfile.load(options.run / NAME)
    whole = {n[8:]: tensor for n, tensor in state.items() if n.startswith("weights.")}
    differences: list[float] = []
    same = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in (options.run / "model").iterdir():
            if path.name != FILE:
                (Path(folder) / path.name).write_bytes(path.read_bytes())
        tensorfile.save(whole, Path(folder) / FILE)
        engines = [Engine(Path(folder)), Engine(options.run / "model")]
        for asked in squad_held_out(options.data, options.questions, 1):
            passage = Passage(asked.documents[0].text)
            one, two = (e.read(asked.question, [passage])[0].keep for e in engines)
            differences += [abs(a - b) for a, b in zip(one, two, strict=True)]
            third = len(one) // 3
            kept = [set(sorted(range(len(k)), key=lambda i: -k[i])[:third]) for k in (one, two)]
            same += len(kept[0] & kept[1])
            total += third
    mean = sum(differences) / len(differences)
    print(f"int8 beside float32, {len(differences)} tokens: keep probability differs by")
    print(f"{mean:.4f} on average, {max(differences):.4f} at most;")
    print(f"{same / total:.1%} of the best third are the same tokens")


if __name__ == "__main__":
    main()
