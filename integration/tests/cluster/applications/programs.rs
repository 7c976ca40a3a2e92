//! The example programs of applications: each ends with what plain code computes without a cluster.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

use candle_core::Device;
use cohabit_training::DigitsModel;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::launch::program;
use crate::kit::*;

/// Text to count and to learn from.
const ALICE: &str = include_str!("../../../../client/training/data/alice.txt");

impl Cluster {
    /// Runs the example to its end, which must be success. Returns what its `main` printed.
    fn example(&self, name: &str, arguments: &[&str]) -> String {
        let ended = self.launch_program(&program(name), arguments).end();
        assert_eq!(ended.code, 0, "{name}: {}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// The processes of actors in this cluster.
    fn actor_processes(&self) -> Vec<Pid> {
        let own = self.program_processes();
        let actors = processes_with("COHABIT_APPLICATION_ROLE=actor").into_iter();
        actors.filter(|process| own.contains(process)).map(Pid::from_raw).collect()
    }
}

/// The network that the programs train, after some steps.
fn trained(hidden: u32, rate: f32, steps: u64) -> DigitsModel {
    let model = DigitsModel::new(1, hidden, &Device::Cpu).unwrap();
    for step in 0..steps {
        model.descend(&model.batch(step, 64), rate).unwrap();
    }
    model
}

/// Also if the process of a trial is killed: the trial begins anew, and makes up for what it had done.
#[test]
fn search_goes_on_with_the_better_half() {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_with("sim:2xH200-141G", &["--max-sharing", "4"]);
    let launch = cluster.launch_program(&program("search"), &[]);
    until("a trial is killed", || {
        cluster.actor_processes().first().is_some_and(|trial| kill(*trial, Signal::SIGKILL).is_ok())
    });
    let ended = launch.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);

    let mut rates = vec![3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001];
    let mut expected = String::new();
    for steps in [25, 50, 100, 200] {
        let loss =
            |rate: f32| Some(trained(32, rate, steps).test_loss().unwrap()).filter(|it| it.is_finite());
        let mut ranked: Vec<(f32, f32)> =
            rates.iter().map(|rate| (loss(*rate).unwrap_or(f32::INFINITY), *rate)).collect();
        ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (loss, rate) in &ranked {
            writeln!(expected, "{steps} steps: rate {rate}, loss {loss:.4}").unwrap();
        }
        rates = ranked[..ranked.len().div_ceil(2)].iter().map(|(_, rate)| *rate).collect();
    }
    writeln!(expected, "best: rate {}", rates[0]).unwrap();
    assert_eq!(ended.stdout, expected);
}

#[test]
fn data_parallel_ends_with_the_loss_of_one_process() {
    let cluster = Cluster::start(&["host:4"]);
    let printed = cluster.example("data_parallel", &[]);
    let loss = |begin: &str| -> f64 {
        let line = printed.lines().find_map(|line| line.strip_prefix(begin));
        line.unwrap_or_else(|| panic!("no {begin:?} in {printed}")).parse().unwrap()
    };
    let (together, alone) = (loss("4 processes: loss "), loss("one process: loss "));
    assert!((together - alone).abs() <= 1e-5, "{printed}");
    assert_eq!(format!("{alone:.7}"), format!("{:.7}", trained(128, 0.1, 60).test_loss().unwrap()));
}

/// Words of eight letters that follow from a seed, most of them rare.
fn document(seed: u64) -> String {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let letters = |mut number: u64| {
        let mut word = String::new();
        while number > 0 {
            word.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        word
    };
    (0..60_000)
        .map(|_| {
            letters(10_000_000_000 + next() % 100_000 * 7_919) + if next() % 8 == 0 { ".\n" } else { " " }
        })
        .collect()
}

/// The last file is a pipe, which holds the count up until the counts of the others have been spilled.
#[test]
fn word_count_spills_and_is_exact() {
    let cluster = Cluster::start(&["host:1"]);
    let documents: Vec<String> = (0..8).map(document).collect();
    let names: Vec<String> = (0..8).map(|number| format!("{number}.txt")).collect();
    for (name, text) in names.iter().zip(&documents).take(7) {
        fs::write(cluster.path(name), text).unwrap();
    }
    let pipe = cluster.path(&names[7]);
    mkfifo(pipe.as_str(), Mode::S_IRWXU).unwrap();
    let mut arguments = vec!["counts.txt"];
    arguments.extend(names.iter().map(String::as_str));
    let launch = cluster.launch_program(&program("word_count"), &arguments);
    until("counts are spilled", || {
        let seen = cluster.run(&["objects", "word-count", "--output", "json"]).stdout;
        let seen: serde_json::Value = serde_json::from_str(&seen).unwrap_or_default();
        seen["stores"][0]["disk"].as_u64().is_some_and(|bytes| bytes > 1 << 19)
    });
    assert!(cluster.ok(&["objects", "word-count"]).contains("DISK"));
    // Without a reader an open that may block would wait for ever.
    let try_open = || OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&pipe);
    let writer = OnceCell::new();
    until("the pipe has a reader", || try_open().is_ok_and(|opened| writer.set(opened).is_ok()));
    fs::write(&pipe, &documents[7]).unwrap();
    drop(writer);
    let ended = launch.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);

    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for word in documents.iter().flat_map(|text| text.split(|it: char| !it.is_alphanumeric())) {
        *counts.entry(word).or_default() += 1;
    }
    counts.remove("");
    let expected = format!("{} words, {} different ones: see counts.txt\n", 8 * 60_000, counts.len());
    assert_eq!(ended.stdout, expected);
    let mut sorted: Vec<(&str, u64)> = counts.into_iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let lines: String = sorted.into_iter().map(|(word, count)| format!("{count} {word}\n")).collect();
    assert!(cluster.read("counts.txt") == lines, "the counts are not exact");
}

#[test]
fn evaluation_is_found_by_later_launches_and_keeps_its_results() {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_with("sim:1xH200-141G", &[]);
    let run = |arguments: &[&str]| cluster.example("evaluation", arguments);
    let accuracy = |rate| format!("accuracy {:.4}\n", trained(128, rate, 200).accuracy().unwrap());
    let (first, second) = (accuracy(0.1), accuracy(0.01));
    assert_eq!(run(&["start"]), "ready, with 0 results\n");
    assert_eq!(run(&["train", "0.1"]), first);

    for process in cluster.actor_processes() {
        kill(process, Signal::SIGKILL).unwrap();
    }
    assert_eq!(run(&["results"]), format!("rate 0.1: {first}"));
    assert_eq!(run(&["train", "0.01"]), second);
    assert_eq!(run(&["results"]), format!("rate 0.01: {second}rate 0.1: {first}"));
    let seen = cluster.json(&["actors", "evaluation"]);
    assert_eq!(seen["actors"][0]["incarnation"], 2, "{seen}");
    run(&["stop"]);
    until("the application has ended", || cluster.jobs_of("application", "COMPLETED").len() == 1);
}

#[test]
fn pipeline_learns_from_its_files_in_order() {
    let cluster = Cluster::start(&["host:1"]);
    let texts = [ALICE.to_owned(), document(1)[..20_000].to_owned()];
    fs::write(cluster.path("alice.txt"), &texts[0]).unwrap();
    fs::write(cluster.path("other.txt"), &texts[1]).unwrap();
    let printed = cluster.example("pipeline", &["alice.txt", "other.txt"]);

    let clean = |line: &str| {
        let lower = line.to_lowercase();
        lower
            .split(|it: char| !it.is_ascii_alphabetic())
            .filter(|it| !it.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (mut pairs, mut sequences) = (BTreeMap::new(), 0);
    for text in &texts {
        let lines = text.lines().map(clean).filter(|line| !line.is_empty());
        let bytes: Vec<u8> = lines.flat_map(|line| (line + "\n").into_bytes()).collect();
        for sequence in bytes.chunks(256) {
            sequences += 1;
            for pair in sequence.windows(2) {
                *pairs.entry((pair[0], pair[1])).or_insert(0_u64) += 1;
            }
        }
    }
    let all: u64 = pairs.values().sum();
    let after = |first| pairs.iter().filter(|(pair, _)| pair.0 == first).map(|(_, count)| count).sum::<u64>();
    let bits =
        |(pair, count): (&(u8, u8), &u64)| *count as f64 * (after(pair.0) as f64 / *count as f64).log2();
    let loss = pairs.iter().map(bits).sum::<f64>() / all as f64;
    assert_eq!(printed, format!("{sequences} sequences, loss {loss:.4} bits\n"));
}
