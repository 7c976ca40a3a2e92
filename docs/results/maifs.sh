#!/bin/sh
# Trains the agents of maifs.md and makes its tables:
#     sh maifs.sh PHILLY.csv.gz OPENB.csv.gz PAIRS.csv SYNERGY OUT [COHABIT]
# PAIRS is Gavel's table of measured pairs, SYNERGY a directory with the 12 files *_1.py of Synergy's models. Writes agents and one
# text file for each table into the directory OUT; agents that are there already are kept. The same seeds give the same agents and
# tables. Takes one to two hours on two cores.
set -eu
[ $# -ge 5 ] || { echo "usage: sh maifs.sh PHILLY.csv.gz OPENB.csv.gz PAIRS.csv SYNERGY OUT [COHABIT]" >&2; exit 2; }
philly=$1 openb=$2 pairs=$3 synergy=$4 out=$5 cohabit=${6:-cohabit}
mkdir -p "$out"
# One thread for each training: the tensor library would only lose time with more.
export RAYON_NUM_THREADS=1

# Philly's jobs of up to a day on up to four GPUs. Agents learn from those before day 50; they are judged on the rest.
gzip -dc "$philly" | awk -F, 'NR == 1 || ($2 <= 86400 && $3 <= 4 && $1 < "2017-10-24")' > "$out/train.csv"
gzip -dc "$philly" | awk -F, 'NR == 1 || ($2 <= 86400 && $3 <= 4 && $1 >= "2017-10-24")' > "$out/test.csv"
gzip -dc "$openb" | awk -F, 'NR == 1 || ($4 > 0 && $10 != "" && $10 - ($11 == "" ? $9 : $11) <= 86400)' > "$out/openb.csv"

# Agents are trained with eight of the models; the other four are unseen.
seen="--sensitivity $synergy --sensitivity-models alexnet,bert,deepspeech,gnmt,m5,mobilenet,res18,shufflenet"
unseen="--sensitivity $synergy --sensitivity-models lstm,res50,transformer,vae"
shared="--max-sharing 2 --interference table:$pairs"
node=4:V100@25g,12c250G

train() {
    name=$1
    shift
    [ -e "$out/$name/card.json" ] || "$cohabit" policy train --trace "$out/train.csv" --cluster "8x$node" $shared \
        --predictor pretrained $seen --show-progress "$@" --out "$out/$name" > "$out/$name.txt" 2> "$out/$name.log"
    echo "$name"
}

# Three seeds of the agents, agents that were not taught, a single agent, and one without each part.
for seed in 1 2 3; do train agents-$seed --seed $seed; done
train untrained --imitation-epochs 0 --episodes 0
train imitation --episodes 0
train single --coordination single
train no-attention --no-attention
train no-graph --coordination none
train full-graph --coordination full
train fixed-shares --fixed-shares
train no-interference --no-interference-features

all=
for name in agents-1 agents-2 agents-3 untrained imitation single no-attention no-graph full-graph fixed-shares no-interference; do
    all="$all --agents $out/$name"
done
three="--agents $out/agents-1 --agents $out/agents-2 --agents $out/agents-3"

windows="--trace $out/test.csv --limit 1500 --windows 10 --stride 1700 --seed 1,2,3"
plain=first-fit-sharing,spd,a-srpt,hybrid,drf,tetris
tuned=$(echo "$plain," | sed 's/,/:tune=on,/g; s/,$//')

table() {
    name=$1
    shift
    "$cohabit" simulate --fair-share off $shared --baseline maifs "$@" > "$out/$name.txt" 2> "$out/$name.err" || cat "$out/$name.err"
    echo "$name"
}

# The headline: learned run times, noisy tables, the shipped model of interference; no job may be stopped.
known="--predictor pretrained --known-sensitivity noisy:0.2"
real="$known --preemptible 0"
table load-1 $windows $seen $real --cluster "8x$node" --load 1 --policy "$plain,$tuned,maifs" $all
# The steps that are not the agents': without tuning, and with places by agents and shares fixed.
table untuned $windows $seen $real --cluster "8x$node" --load 1 --policy maifs,maifs:tune=off \
    --agents "$out/agents-1" --agents "$out/fixed-shares"
# All jobs may be stopped, which a-srpt and hybrid do.
table stops $windows $seen $known --preemptible 1 --cluster "8x$node" --load 1 --policy "$tuned,maifs" $three
for load in 0.7 1.3; do
    table "load-$load" $windows $seen $real --cluster "8x$node" --load $load --policy "$tuned,maifs" $three
done
# Other sizes and unseen tables, with the agents as they are.
for nodes in 4 16 32; do
    table "nodes-$nodes" $windows $seen $real --cluster "${nodes}x$node" --load 1 --policy "$tuned,maifs" $three
done
table unseen $windows $unseen $real --cluster "8x$node" --load 1 --policy "$tuned,maifs" $three
table openb --trace "$out/openb.csv" --seed 1,2,3 $seen $real --cluster "8x$node" --load 1 --policy "$tuned,maifs" $three
# Bounds: exact run times, tables and interference.
table oracles $windows $seen --cluster "8x$node" --load 1 --estimator oracle --predictor truth --known-sensitivity exact \
    --preemptible 0 --policy "$plain,$tuned,maifs" $three
