#!/bin/sh
# The tables of default.md: the shipped default beside everybody with the same information.
#     sh default.sh PHILLY.csv.gz PAIRS.csv OUT [COHABIT]
# PAIRS is Gavel's table of measured pairs. Writes one text file for each table into the directory OUT. Takes about five minutes on two
# cores; the same seeds give the same tables.
set -eu
[ $# -ge 3 ] || { echo "usage: sh default.sh PHILLY.csv.gz PAIRS.csv OUT [COHABIT]" >&2; exit 2; }
trace=$1 pairs=$2 out=$3 cohabit=${4:-cohabit}
mkdir -p "$out"

# Ten windows of Philly's jobs on one GPU of up to a day. Everything else is the default: learned run times, the shipped predictor.
windows="--max-duration 1d --max-gpus 1 --skip 2000 --limit 1500 --windows 10 --stride 5500"
shared="--max-sharing 2 --interference table:$pairs"
rivals=fifo-greedy,easy-backfill,las,las-tuned,spd,first-fit-sharing,least-loaded,horus,isacpp,clwp-nlwp,a-srpt

table() {
    name=$1 gpu=$2 load=$3 preemptible=$4
    shift 4
    "$cohabit" simulate --fair-share off --trace "$trace" $windows $shared --cluster "4x8:$gpu@25g" --load "$load" \
        --preemptible "$preemptible" --baseline hybrid "$@" > "$out/$name.txt"
    echo "$name"
}

for preemptible in 0 1; do
    table "V100-1-$preemptible" V100 1 $preemptible --predictor pretrained --policy "$rivals,hybrid"
done
for gpu in P100 K80; do
    table "$gpu-1-0" $gpu 1 0 --predictor pretrained --policy "$rivals,hybrid"
done
for load in 0.7 1.3; do
    table "V100-$load-0" V100 $load 0 --predictor pretrained --policy "$rivals,hybrid"
done
# Bounds: what exact run times, exact interference, and both are worth.
table oracle-runtimes V100 1 0 --estimator oracle --predictor pretrained --policy spd,hybrid
table oracle-interference V100 1 0 --predictor truth --policy isacpp,hybrid
table oracle-both V100 1 0 --estimator oracle --predictor truth --policy isacpp,hybrid
