#!/bin/sh
# The figures of fairness.md: one user who floods the queue, with and without fair share.
#     sh fairness.sh OUT [COHABIT]
# Needs Python 3 for the traces and the sums; writes traces, tables and figures into the directory OUT. Takes some minutes; the same seeds
# give the same figures.
set -eu
[ $# -ge 1 ] || { echo "usage: sh fairness.sh OUT [COHABIT]" >&2; exit 2; }
out=$1 cohabit=${2:-cohabit}
here=$(dirname "$0")
mkdir -p "$out"

for seed in 1 2 3; do
    python3 "$here/fairness.py" trace "$seed" > "$out/flood-$seed.csv"
    for preemptible in 0 1; do
        for policy in hybrid fifo; do
            name=flood-$seed-$policy-$preemptible
            "$cohabit" simulate --trace "$out/flood-$seed.csv" --cluster 2x8:V100@25g --policy $policy --fair-share both \
                --preemptible $preemptible --jobs-csv "$out/$name.csv" > "$out/$name.txt"
            python3 "$here/fairness.py" figures "$out/$name.csv" 16 > "$out/$name.figures"
            echo "$name"
            cat "$out/$name.figures"
        done
    done
done
