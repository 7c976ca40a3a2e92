#!/bin/sh
# The table of other settings in default.md.
#     sh settings.sh PHILLY.csv.gz PAI.csv.gz OPENB.csv.gz PAIRS.csv OUT [COHABIT]
# PAI is GAIA's file, PAIRS is Gavel's table of measured pairs. Writes one text file for each row into the directory OUT. Takes about
# a quarter of an hour on two cores; the same seeds give the same tables.
set -eu
[ $# -ge 5 ] || { echo "usage: sh settings.sh PHILLY.csv.gz PAI.csv.gz OPENB.csv.gz PAIRS.csv OUT [COHABIT]" >&2; exit 2; }
philly=$1 pai=$2 openb=$3 pairs=$4 out=$5 cohabit=${6:-cohabit}
mkdir -p "$out"

rivals=fifo-greedy,easy-backfill,las-tuned,spd,least-loaded,isacpp,a-srpt

table() {
    name=$1
    shift
    "$cohabit" simulate --fair-share off --load 1 --max-sharing 2 --baseline hybrid --policy "$rivals,hybrid" "$@" > "$out/$name.txt"
    echo "$name"
}

singles="--max-duration 1d --max-gpus 1"
small="--cluster 4x8:V100@25g"
ten="--trace $philly $singles --skip 2000 --limit 1500 --windows 10 --stride 5500"
measured="--interference table:$pairs --predictor pretrained"

# How many jobs report progress, and how many may be stopped.
for progress in 0 0.6 1; do
    table "progress-$progress" $ten $small $measured --preemptible 0 --progress $progress
done
for preemptible in 0.3 0.6; do
    table "preemptible-$preemptible" $ten $small $measured --preemptible $preemptible
done
# Slowdowns by a law of utilization instead of measured pairs.
table law $ten $small --interference law --predictor law --preemptible 0
# Other arrivals and lengths.
table pai --trace "$pai" $singles $small --limit 1500 --windows 10 --stride 6000 $measured --preemptible 0
table openb --trace "$openb" $singles $small --limit 600 --windows 10 --stride 600 $measured --preemptible 0
# Gangs beside shared GPUs, on four times as many GPUs.
for preemptible in 0 1; do
    table "gangs-$preemptible" --trace "$philly" --max-duration 3d --cluster 16x8:V100@100g --limit 3000 --windows 10 --stride 6000 \
        $measured --preemptible $preemptible
done
# A predictor of the shipped kind that has seen every second pair only; the jobs meet all pairs.
awk -F, 'NR == 1 { print; next }
    { key = $3 "," $4 < $5 "," $6 ? $3 "," $4 "," $5 "," $6 : $5 "," $6 "," $3 "," $4 }
    !(key in part) { part[key] = count++ % 2 }
    part[key]' "$pairs" > "$out/half.csv"
"$cohabit" predict train --model low-rank --format gavel-pairs --data "$out/half.csv" --out "$out/half" > "$out/half.txt"
for gpu in V100 P100 K80; do
    table "half-$gpu" $ten --cluster "4x8:$gpu@25g" --interference "table:$pairs" --predictor "model:$out/half" --preemptible 0
done
