"""One token at a time: constraints, sampling, stop strings and the batched loop."""
