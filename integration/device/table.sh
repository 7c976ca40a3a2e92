#!/usr/bin/env bash
# Fills the table of measured co-locations with `cohabit profile`, as far as one run of under nine minutes comes;
# the next run goes on from there. See README.md.
#
#     integration/device/table.sh [--cohabit FILE] [--out DIR] [--max-time TIME] [flags of `profile`…]
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
cohabit="$root/target/release/cohabit"
out="$root/docs/measurements"
max_time=7m
while [ $# -gt 0 ]; do
    case "$1" in
        --cohabit) cohabit="$2"; shift 2 ;;
        --out) out="$2"; shift 2 ;;
        --max-time) max_time="$2"; shift 2 ;;
        *) break ;;
    esac
done
if [ ! -x "$cohabit" ]; then
    echo "there is no $cohabit: build it by 'cargo build --release', or name one by --cohabit FILE" >&2
    exit 2
fi

# The descriptions are the same wherever they are written; the commands name paths of this machine.
workloads="$(mktemp -d)"
trap 'rm -rf "$workloads"' EXIT
mkdir -p "$out"
PYTHONPATH="$root/examples/pytorch" PYTHONDONTWRITEBYTECODE=1 \
    "${PYTHON:-python3}" -m zoo.workloads --out "$workloads"

# What is measured, and for how long, is what `cohabit profile` does by itself: 150 pairs and 30 triples.
"$cohabit" profile --workloads "$workloads/workloads.toml" --out "$out/co-location.csv" \
    --max-time "$max_time" --yes "$@"
