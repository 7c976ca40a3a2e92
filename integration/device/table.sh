#!/usr/bin/env bash
# Fills the table of measured co-locations with `cohabit profile`, as far as one run of under nine minutes comes; the
# next run goes on from there. See README.md.
#
#     integration/device/table.sh [--cohabit FILE] [--out DIR] [flags of `cohabit profile`…]
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
cohabit="$root/target/release/cohabit"
out="$root/docs/measurements"
while [ $# -gt 0 ]; do
    case "$1" in
        --cohabit) cohabit="$2"; shift 2 ;;
        --out) out="$2"; shift 2 ;;
        *) break ;;
    esac
done
if [ ! -x "$cohabit" ]; then
    echo "there is no program $cohabit: build it by 'cargo build --release', or name one by --cohabit FILE" >&2
    exit 2
fi

# The descriptions are the same wherever they are written; the commands name paths of this machine.
workloads="$(mktemp -d)"
trap 'rm -rf "$workloads"' EXIT
mkdir -p "$out"
PYTHONPATH="$root/examples/pytorch" PYTHONDONTWRITEBYTECODE=1 \
    "${PYTHON:-python3}" -m zoo.workloads --out "$workloads"

"$cohabit" profile --workloads "$workloads/workloads.toml" --out "$out/co-location.csv" \
    --sharing exclusive,mps,time-sliced --set-sizes 1,2,3 --pairs 150 --triples 30 \
    --warm-up 5s --steady 10s --max-time 7m --seed 1 --yes "$@"
