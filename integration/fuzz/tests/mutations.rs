//! Every property holds for the seeds, and for some thousand mutations of each.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::path::Path;

use cohabit_fuzz::{FuzzTarget, TARGETS};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Mutations for each target; slow targets get fewer.
const CASES: u32 = 2_000;

fn seeds(target: &FuzzTarget) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let seeds: Vec<_> = entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    seeds
}

/// One change of some bytes; positions are fractions of the length.
#[derive(Debug, Clone)]
enum Mutation {
    Set(f64, u8),
    Cut(f64, f64),
    Repeat(f64, f64),
    Insert(f64, Vec<u8>),
    Join(f64, usize),
}

fn change() -> impl Strategy<Value = Mutation> {
    let place = || 0.0..1.0;
    prop_oneof![
        4 => (place(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        1 => (place(), place()).prop_map(|(from, to)| Mutation::Cut(from, to)),
        1 => (place(), place()).prop_map(|(from, to)| Mutation::Repeat(from, to)),
        2 => (place(), insertion()).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        1 => (place(), any::<usize>()).prop_map(|(at, other)| Mutation::Join(at, other)),
    ]
}

/// Values that often break parsers.
fn insertion() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 1..9),
        prop::sample::select(vec![
            "-1",
            "0",
            "18446744073709551615",
            "1e308",
            "1e-320",
            "NaN",
            "inf",
            "\0",
            "\n",
            "\"",
            "\u{feff}",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::sample::select(vec![u64::MAX, 1 << 63, 1 << 32, 0]).prop_map(|it| it.to_le_bytes().to_vec()),
        Just(vec![0xfd; 9]),
    ]
}

fn changed(seeds: &[Vec<u8>], which: usize, changes: &[Mutation]) -> Vec<u8> {
    let mut bytes = seeds[which % seeds.len()].clone();
    for change in changes {
        let at = |part: f64| (part * bytes.len() as f64) as usize;
        match change {
            Mutation::Set(place, byte) => {
                let place = at(*place);
                bytes.get_mut(place).into_iter().for_each(|there| *there = *byte);
            }
            Mutation::Cut(one, other) => drop(bytes.drain(at(one.min(*other))..at(one.max(*other)))),
            Mutation::Repeat(one, other) => {
                let (from, to) = (at(one.min(*other)), at(one.max(*other)));
                bytes.splice(from..from, bytes[from..to].to_vec());
            }
            Mutation::Insert(place, more) => drop(bytes.splice(at(*place)..at(*place), more.clone())),
            Mutation::Join(place, other) => {
                bytes.truncate(at(*place));
                bytes.extend(&seeds[other % seeds.len()]);
            }
        }
    }
    bytes
}

#[test]
fn every_property_holds_for_every_seed() {
    for target in &TARGETS {
        seeds(target).iter().for_each(|seed| target.check(seed));
    }
}

#[test]
fn every_property_holds_for_mutations_of_the_seeds() {
    for target in &TARGETS {
        let seeds = seeds(target);
        let cases = if target.is_slow() { CASES / 20 } else { CASES };
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mutations = (any::<usize>(), vec(change(), 1..6));
        let checked = TestRunner::new(config).run(&mutations, |(which, changes)| {
            target.check(&changed(&seeds, which, &changes));
            Ok(())
        });
        assert!(checked.is_ok(), "{}: {}", target.name, checked.unwrap_err());
    }
}
