#!/bin/sh
# The schedules of interference.md, from the commands that it names:
#     sh interference.sh PHILLY.csv.gz OPENB.csv.gz PAIRS.csv OUT [COHABIT]
# PAIRS is Gavel's table of measured pairs. Writes one text file for each table into the directory OUT, and what it makes of the
# traces and the table. Takes some minutes on four cores; the same seeds give the same tables.
set -eu
[ $# -ge 4 ] || { echo "usage: sh interference.sh PHILLY.csv.gz OPENB.csv.gz PAIRS.csv OUT [COHABIT]" >&2; exit 2; }
philly=$1 openb=$2 pairs=$3 out=$4 cohabit=${5:-cohabit}
mkdir -p "$out"
# One thread for each model: many runs go beside each other.
export RAYON_NUM_THREADS=1

# Philly's jobs of up to a day: those on one GPU, and those of all sizes. Beside longer ones no policy changes the makespan.
gzip -dc "$philly" | awk -F, 'NR == 1 || ($2 <= 86400 && $3 == 1)' > "$out/philly-single.csv"
gzip -dc "$philly" | awk -F, 'NR == 1 || $2 <= 86400' > "$out/philly-day.csv"
# The same of openb: columns 4 and 9 to 11 are the GPUs, when a pod came, when it was gone, and when it was placed.
gzip -dc "$openb" | awk -F, 'NR == 1 || ($4 > 0 && $10 != "" && $10 - ($11 == "" ? $9 : $11) <= 86400)' > "$out/openb-day.csv"

table() {
    name=$1
    shift
    "$cohabit" simulate --fair-share off "$@" > "$out/$name.txt" 2> "$out/$name.err" || cat "$out/$name.err"
    echo "$name"
}

sharing=first-fit-sharing,least-loaded,util-threshold,horus,isacpp,isacpp:as-released=on,clwp-nlwp,a-srpt,hybrid
all="--exclusive fifo-greedy,a-srpt --policy $sharing --seed 1,2,3,4,5"
some="--exclusive a-srpt --policy first-fit-sharing,util-threshold,horus,isacpp,clwp-nlwp,a-srpt,hybrid --seed 1,2,3"
single="--trace $out/philly-single.csv --skip 20000 --limit 4000"
two="--max-sharing 2"
measured="--interference table:$pairs --predictor truth"
oracle="--estimator oracle"

# Jobs on one GPU: by load, by GPU, all at once, and three on a GPU.
for load in 0.7 1 1.3; do
    table "load-$load" $oracle $single --cluster 4x8:V100@25g --load $load $two $measured $all &
done
wait
for gpu in P100 K80; do table "gpu-$gpu" $oracle $single --cluster 4x8:$gpu@25g --load 1 $two $measured $some & done
table batch $oracle --trace "$out/philly-single.csv" --skip 20000 --limit 1000 --cluster 1x8:V100@25g --load 1000 $two $measured $some &
table three $oracle $single --cluster 4x8:V100@25g --load 1 $measured $some &
wait

# Jobs of all sizes, openb, the law as the truth, and estimates of run times that are learned.
table all-sizes $oracle --trace "$out/philly-day.csv" --skip 20000 --limit 4000 --cluster 16x8:V100@25g --load 1 $two $measured $some &
table openb $oracle --trace "$out/openb-day.csv" --cluster 1x8:V100@25g --load 1 $two $measured $some &
table law $oracle $single --cluster 4x8:V100@25g --load 1 --configurations "$pairs" --predictor truth $some &
table forest $single --cluster 4x8:V100@25g --load 1 $two $measured $some &
wait

# As many jobs as in ISACPP's run, all at once, on few and on many GPUs.
for skip in 20000 25000 30000 35000 40000; do
    for cluster in 2x4 4x8; do
        table "few-$cluster-$skip" $oracle --trace "$out/philly-single.csv" --skip $skip --limit 51 --cluster $cluster:V100@25g \
            --load 1000 $two $measured $all
    done
done

# The bound.
for bound in 1.1 1.3 1.5 1.75 2 3; do
    table "bound-$bound" $oracle $single --cluster 4x8:V100@25g --load 1 $two $measured --max-slowdown $bound --seed 1,2,3 --policy hybrid
done

# Learned predictors, judged on jobs that they did not learn from. Every second configuration is PART; PART.csv are the pairs
# of two of them, without-PART.csv those of none, beside-PART.csv those of at most one.
cut_pairs() {
    awk -F, -v part="$1" -v out="$out" '
        NR == FNR { if ($1 == "oracle") { seen[$3 "," $4]; seen[$5 "," $6] } next }
        FNR == 1 {
            for (one in seen) {
                place = 0
                for (other in seen) if (other < one) place++
                if (place % 2 == (part == "odd")) own[one]
            }
            print > out "/" part ".csv"; print > out "/without-" part ".csv"; print > out "/beside-" part ".csv"
        }
        $1 == "oracle" {
            own_ones = (($3 "," $4) in own) + (($5 "," $6) in own)
            if (own_ones == 2) print > out "/" part ".csv"; else print > out "/beside-" part ".csv"
            if (own_ones == 0) print > out "/without-" part ".csv"
        }' "$pairs" "$pairs"
}
learn() {
    "$cohabit" predict train --model "$1" --data "$2" --format gavel-pairs --out "$3" > /dev/null
}
for part in even odd; do
    cut_pairs $part
    judged="$oracle $single --cluster 4x8:V100@25g --load 1 $two --interference table:$out/$part.csv --seed 1,2,3 --policy isacpp,hybrid"
    for model in additive gaussian e-ggat-plus; do
        for from in without beside; do
            learn $model "$out/$from-$part.csv" "$out/$model-$from-$part"
            table "learned-$model-$from-$part" $judged --predictor "model:$out/$model-$from-$part" &
        done
        learn $model "$pairs" "$out/$model"
        table "learned-$model-all-$part" $judged --predictor "model:$out/$model" &
    done
    for predictor in law pretrained truth; do table "learned-$predictor-$part" $judged --predictor $predictor & done
    wait
done
