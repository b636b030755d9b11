#!/bin/sh
# Vicuna's four good categories on a GPU: a server that batches, and the model in this process.
#
#   benchmarks/gpu/plan_vicuna.sh DATA [MODEL] [PORT]
#
# DATA holds vicuna_bench__question.jsonl. Needs vLLM and the model (default: an 8B Llama), about
# ten minutes on one GPU. Prints the tables of benchmarks/plan_vicuna.py. Not run yet.
set -eu
data=$1
model=${2:-meta-llama/Llama-3.1-8B-Instruct}
port=${3:-8199}
vllm serve "$model" --port "$port" --enable-prefix-caching --max-model-len 8192 &
server=$!
trap 'kill "$server"' EXIT
until curl -sf "http://127.0.0.1:$port/v1/models" >/dev/null; do
    kill -0 "$server"
    sleep 2
done
url=http://127.0.0.1:$port
python benchmarks/plan_vicuna.py --data "$data" --url "$url" --questions 40 --max-tokens 600
python benchmarks/plan_vicuna.py --data "$data" --url "$url" --questions 20 --when always \
    --strategies skeleton,graph
python benchmarks/plan_vicuna.py --data "$data" --url "$url" --questions 10 --leader
