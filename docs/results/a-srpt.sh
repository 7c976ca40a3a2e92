#!/bin/sh
# Every table of a-srpt.md, from the commands that it names: sh a-srpt.sh PHILLY.csv.gz OUT [COHABIT]
# Writes one text file for each table into the directory OUT. Takes some minutes; the same seeds give the same tables.
set -eu
[ $# -ge 2 ] || { echo "usage: sh a-srpt.sh PHILLY.csv.gz OUT [COHABIT]" >&2; exit 2; }
trace=$1 out=$2 cohabit=${3:-cohabit}
mkdir -p "$out"

table() {
    name=$1
    shift
    "$cohabit" simulate --fair-share off "$@" > "$out/$name.txt"
    echo "$name"
}

philly() {
    name=$1 cluster=$2 load=$3
    shift 3
    table "$name" --trace "$trace" --cluster "$cluster" --load "$load" "$@"
}

policies=fifo-strict,fifo-greedy,easy-backfill,spd,spw,a-srpt-turn
variants=a-srpt-turn,a-srpt-turn:order=turn,a-srpt-no-delay,a-srpt-no-vm,a-srpt-random-map
variants=$variants,a-srpt-turn:starvation-barrier=reserve,a-srpt-turn:order=turn,starvation-barrier=reserve
variants=$variants,a-srpt-turn:eager-start=on,a-srpt-strict

part="--limit 20000 --seed 1,2,3"

for load in 0.9 1.2; do
    philly "whole-$load" 64x8:V100@25g "$load" --seed 1,2 --policy "$policies" &
done
philly "whole-oracle" 64x8:V100@25g 0.9 --seed 1,2 --estimator oracle --policy spd,a-srpt-turn,a-srpt-turn:order=turn &
wait
for load in 0.7 0.9 1.2 1.5; do philly "load-$load" 64x8:V100@25g "$load" $part --policy "$policies" & done
wait
for nodes in 32 128; do philly "nodes-$nodes" "${nodes}x8:V100@25g" 0.9 $part --policy "$policies" & done
philly idle-32 32x8:V100@25g 0.9 $part --policy spd,a-srpt-turn,a-srpt-turn:eager-start=on &
for network in 10g 100g; do philly "network-$network" "64x8:V100@$network" 0.9 $part --policy "$policies" & done
wait
for estimator in oracle noisy:0.5 forest recent-median group-mean constant; do
    philly "estimator-$estimator" 64x8:V100@25g 0.9 $part --estimator "$estimator" \
        --policy spd,a-srpt-turn,a-srpt-turn:order=turn &
done
wait
for estimator in oracle forest; do
    philly "variants-$estimator" 64x8:V100@25g 0.9 $part --estimator "$estimator" --policy "$variants" &
done
for load in 0.9 1.2; do philly "las-$load" 64x8:V100@25g "$load" --seed 1,2 --policy las,a-srpt-turn & done
philly srtf 64x8:V100@25g 0.9 $part --estimator oracle --policy srtf-oracle,a-srpt-turn &
for network in 25g 100g; do
    for load in 0.9 1.5; do
        table "synthetic-$network-$load" --trace synthetic:600 --cluster "16x8:V100@$network" --load "$load" \
            --estimator noisy:0.3 --seed 1,2,3,4,5,6,7,8,9,10 --policy "$policies,las,$variants" &
    done
done
wait
