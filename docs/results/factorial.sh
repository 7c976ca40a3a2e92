#!/bin/sh
# The factorial of default.md (order, placement and information) and its table of network predictors.
#     sh factorial.sh PHILLY.csv.gz PAIRS.csv OUT [COHABIT]
# PAIRS is Gavel's table of measured pairs. Writes a document for each group of cells and two text files into the directory OUT:
# factorial.txt and networks.txt, with a line for each cell. Takes about 20 minutes on two cores; the same seeds give the same figures.
set -eu
[ $# -ge 3 ] || { echo "usage: sh factorial.sh PHILLY.csv.gz PAIRS.csv OUT [COHABIT]" >&2; exit 2; }
trace=$1 pairs=$2 out=$3 cohabit=${4:-cohabit}
mkdir -p "$out"

# The windows of default.sh: ten times 1,500 of Philly's jobs on one GPU of up to a day.
jobs="--max-duration 1d --max-gpus 1 --skip 2000 --limit 1500 --windows 10 --stride 5500 --cluster 4x8:V100@25g --load 1"
shared="--max-sharing 2 --interference table:$pairs"

cells() {
    name=$1 preemptible=$2
    shift 2
    "$cohabit" simulate --fair-share off --trace "$trace" $jobs $shared --preemptible "$preemptible" --output json "$@" > "$out/$name-$preemptible.json"
    echo "$name-$preemptible"
}

# A line for each policy of a document: its mean divided by that of the default as it ships, window by window, with the 95% interval of
# Student's t for ten windows. The runs of a document are indented by six.
compare() {
    awk -v cell="$1" -F '[:,]' '
        function value() { gsub(/[ "]/, "", $2); return $2 }
        /^      "policy": / { split($0, quoted, "\""); policy = quoted[4] }
        /^      "(mean_jct_s|p99_jct_s|mean_slowdown|out_of_memory)": / { key = $1; gsub(/[ "]/, "", key); run[key] = value() }
        /^      "window": / {
            window = value()
            if (NR == FNR) { if (policy == "hybrid") base[window] = run["mean_jct_s"]; next }
            if (!(policy in count)) order[++policies] = policy
            count[policy]++
            logarithm = log(run["mean_jct_s"] / base[window])
            sum[policy] += logarithm; squares[policy] += logarithm ^ 2
            for (key in run) total[policy, key] += run[key]
        }
        END {
            for (at = 1; at <= policies; at++) {
                policy = order[at]; n = count[policy]; mean = sum[policy] / n
                rest = (squares[policy] - n * mean ^ 2) / (n - 1)
                half = 2.262 * sqrt((rest > 0 ? rest : 0) / n)
                printf "%-24s %-24s %.4f [%.4f, %.4f]  mean %6.0f s  p99 %6.0f s  slowdown %.3f  out of memory %.1f\n", cell, policy,
                    exp(mean), exp(mean - half), exp(mean + half), total[policy, "mean_jct_s"] / n, total[policy, "p99_jct_s"] / n,
                    total[policy, "mean_slowdown"] / n, total[policy, "out_of_memory"] / n
            }
        }' "$out/learned-pretrained-0.json" "$out/$1.json"
}

# Order: first come or learned. Placement: exclusive, blind, or by predicted interference. Information: run times that are learned or exact;
# no measurements at all, the shipped predictor, or exact interference. First come asks for run times only to predict interference.
learned="--estimator forest" exact="--estimator oracle"
cells learned-pretrained 0 $learned --predictor pretrained --exclusive fifo-greedy,a-srpt \
    --policy fifo-greedy,first-fit-sharing,least-loaded,isacpp,a-srpt,hybrid
cells learned-none 0 $learned --predictor none --policy isacpp,hybrid
cells learned-truth 0 $learned --predictor truth --policy isacpp,hybrid
cells exact-pretrained 0 $exact --predictor pretrained --exclusive a-srpt --policy isacpp,a-srpt,hybrid
cells exact-none 0 $exact --predictor none --policy isacpp,hybrid
cells exact-truth 0 $exact --predictor truth --policy isacpp,hybrid
# Where all jobs may be stopped; no policy stops any for the order of submission.
cells learned-pretrained 1 $learned --predictor pretrained --exclusive a-srpt --policy a-srpt,hybrid
cells learned-none 1 $learned --predictor none --policy hybrid
cells learned-truth 1 $learned --predictor truth --policy hybrid
cells exact-pretrained 1 $exact --predictor pretrained --exclusive a-srpt --policy a-srpt,hybrid
cells exact-none 1 $exact --predictor none --policy hybrid
cells exact-truth 1 $exact --predictor truth --policy hybrid
for group in learned-none-0 learned-pretrained-0 learned-truth-0 exact-none-0 exact-pretrained-0 exact-truth-0 \
    learned-none-1 learned-pretrained-1 learned-truth-1 exact-none-1 exact-pretrained-1 exact-truth-1; do
    compare $group
done > "$out/factorial.txt"

# Networks that learned from all pairs, as the shipped predictor did. Gavel has no contention metrics, which IASP completes. The second
# table has the two that the simulator gives to policies: memory, and the utilization that follows from two copies of a job
# (scheduler/sim/src/workload/measured). What no pair of copies tells stays open.
awk -F, '
    BEGIN {
        OFS = ","
        print "set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible,family"
        known = "ResNet-18 770 0.5 cnn;ResNet-50 1950 79 cnn;CycleGAN 5680 0 cnn;LM 4060 4.9 rnn;Transformer 1660 33.9 transformer;" \
            "Recommendation 3960 0.25 embedding;A3C 4080 0 other"
        for (at = split(known, models, ";"); at > 0; at--) {
            split(models[at], words, " ")
            own[words[1]] = words[2]; sample[words[1]] = words[3]; family[words[1]] = words[4]
        }
    }
    { sub(/\r$/, "") }
    $1 != "oracle" { next }
    NR == FNR { if ($3 == $5 && $4 == $6 && $14 == 1) util[$2, $3, $4] = 0.475 * ($9 / $7 + $10 / $8) / 2; next }
    { set++; member($3, $4, $9, $7); member($5, $6, $10, $8) }
    function member(model, batch, alone, together) {
        busy = ($2, model, batch) in util ? util[$2, model, batch] : ""
        if (busy > 1) busy = 1
        print set, $2, "", model, (batch > 0 ? batch : ""), alone, ($14 == 1 ? together : ""), \
            sprintf("%.0f", (own[model] + sample[model] * batch) * 1048576), "", busy, "", $14, family[model]
    }' "$pairs" "$pairs" > "$out/alone.csv"
learn() {
    "$cohabit" predict train --model "$1" --data "$2" --format "$3" --out "$out/$4" > "$out/$4.txt"
    echo "$4"
}
learn iapp "$pairs" gavel-pairs iapp
learn iapp "$out/alone.csv" co-location iapp-alone
learn e-ggat "$pairs" gavel-pairs e-ggat
learn e-ggat-plus "$pairs" gavel-pairs e-ggat-plus
cells networks-pretrained 0 --predictor pretrained --policy clwp-nlwp,isacpp,hybrid
for model in iapp iapp-alone e-ggat e-ggat-plus; do
    cells "networks-$model" 0 --predictor "model:$out/$model" --policy clwp-nlwp,isacpp,hybrid
done
for model in pretrained iapp iapp-alone e-ggat e-ggat-plus; do
    compare "networks-$model-0"
done > "$out/networks.txt"
