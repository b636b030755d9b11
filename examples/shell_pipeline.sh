#!/bin/sh
# The CLI in a shell pipeline: a log shrinks before it goes anywhere else.
# Usage: sh examples/shell_pipeline.sh [FILE]
set -eu
file=${1:-"$(dirname "$0")/documents/millstones.md"}

# Text in, text out; the numbers go to stderr.
cat "$file" | headrace compress --rate 0.5 --question "How heavy is the runner?" > /tmp/headrace.$$.txt
wc -w "$file" /tmp/headrace.$$.txt | head -2
rm /tmp/headrace.$$.txt

# For machines.
headrace compress "$file" --target-tokens 60 --json 2>/dev/null | python3 -c 'import json,sys; r = json.load(sys.stdin); print(r["tokens_in"], "->", r["tokens_out"])'

# JSON Lines through the reranker.
headrace rerank --question "When was the rack cleared of ice?" --top-k 1 "$(dirname "$0")/documents/records.jsonl"
