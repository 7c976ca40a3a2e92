#!/bin/sh
# The tables of default.md without sharing: the default's order beside preemptive SRTF with exact run times.
#     sh exclusive.sh PHILLY.csv.gz OUT [COHABIT]
# Writes one text file for each table into the directory OUT. Takes about 20 minutes on two cores; the same seeds give the same tables.
set -eu
[ $# -ge 2 ] || { echo "usage: sh exclusive.sh PHILLY.csv.gz OUT [COHABIT]" >&2; exit 2; }
trace=$1 out=$2 cohabit=${3:-cohabit}
mkdir -p "$out"

table() {
    name=$1 preemptible=$2
    shift 2
    "$cohabit" simulate --fair-share off --trace "$trace" --load 0.9 --preemptible "$preemptible" "$@" > "$out/$name.txt"
    echo "$name"
}

# 32 GPUs: seven windows of jobs on one GPU of up to a day. 128 GPUs: six windows of all jobs of up to three days.
small="--max-duration 1d --max-gpus 1 --skip 2000 --limit 4000 --windows 7 --stride 8000 --cluster 4x8:V100@400g"
large="--max-duration 3d --limit 10000 --windows 6 --stride 10000 --cluster 16x8:V100@1000g/900GB"
# 512 GPUs: the whole trace, once.
whole="--cluster 64x8:V100@1000g/900GB"
for size in small large whole; do
    eval "jobs=\$$size"
    table "$size-oracle" 1 $jobs --estimator oracle --stop-cost 0,1 --policy srtf-oracle
    for preemptible in 1 0; do
        table "$size-$preemptible" $preemptible $jobs --policy fifo-greedy,a-srpt
    done
done
