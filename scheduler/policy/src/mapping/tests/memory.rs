//! The cache never changes the mapper's answers.

use super::{graph, of_model, random_stages, server, servers};
use crate::mapping::{JobGraph, Mapper, MapperOptions, Mapping, Selection, Server, Slot};

fn mapper() -> Mapper {
    Mapper::new(MapperOptions::default())
}

/// A cluster of three kinds of servers, with free devices drawn from the seed.
fn mixed(seed: u64) -> Vec<Server> {
    let mut draws = crate::mapping::split_mix::SplitMix64::new(seed);
    let kinds = [server(0, 8), of_model(server(0, 4), "A100"), Server { network: 4e9, ..server(0, 8) }];
    let filled = |at: usize| {
        let kind = kinds[at % 3].clone();
        Server { free: draws.below(kind.devices + 1), ..kind }
    };
    (0..12).map(filled).collect()
}

fn jobs() -> Vec<JobGraph> {
    (0..40).map(|seed| graph(&random_stages(seed, 2 + u32::try_from(seed % 14).unwrap()))).collect()
}

#[test]
fn a_mapper_with_a_cache_answers_like_a_new_one() {
    let mut old = mapper();
    let forward: Vec<Option<Mapping>> = answers(&mut old, jobs().iter());
    let again = answers(&mut old, jobs().iter());
    let fresh: Vec<Option<Mapping>> = answers_of_new_ones();
    assert_eq!(forward, fresh);
    assert_eq!(again, fresh);
    assert!(fresh.iter().flatten().count() > 100, "most jobs find a place");
}

fn answers<'j>(mapper: &mut Mapper, jobs: impl Iterator<Item = &'j JobGraph>) -> Vec<Option<Mapping>> {
    let clusters: Vec<_> = (0..5).map(mixed).collect();
    jobs.flat_map(|job| clusters.iter().map(|it| mapper.place(job, it, job.devices())).collect::<Vec<_>>())
        .collect()
}

fn answers_of_new_ones() -> Vec<Option<Mapping>> {
    jobs().iter().flat_map(|job| answers(&mut mapper(), std::iter::once(job))).collect()
}

#[test]
fn bounds_follow_the_cluster_and_not_what_is_free() {
    let job = graph(&[(8, 0.1, 0.0, 1e9)]);
    let mut mapper = mapper();
    let empty = mapper.bounds(&job, &servers(&[8, 8]));
    assert_eq!(mapper.bounds(&job, &servers(&[0, 3])), empty);
    let slower = [Server { network: 1e8, ..server(8, 8) }, server(8, 8)];
    assert!(mapper.bounds(&job, &slower).slowest > empty.slowest);
    assert_eq!(mapper.bounds(&job, &servers(&[8, 8])), empty);
    let smaller = [server(4, 4), server(4, 4)];
    assert!(mapper.bounds(&job, &smaller).fastest > empty.fastest);
    assert_eq!(mapper.bounds(&job, &servers(&[8, 8, 8])), empty);
}

#[test]
fn equally_many_devices_in_another_mix_of_classes_are_another_shape() {
    let job = graph(&[(1, 0.1, 1e8, 0.0), (1, 0.1, 2e8, 0.0), (1, 0.1, 3e8, 0.0), (1, 0.1, 0.0, 0.0)]);
    let slow = Server { network: 1e8, ..server(1, 8) };
    let mostly_slow = [server(1, 8), slow.clone(), slow.clone(), slow.clone()];
    let mostly_fast = [server(1, 8), server(1, 8), server(1, 8), slow];
    let mut mapper = mapper();
    let first = mapper.place(&job, &mostly_slow, 4).unwrap();
    let second = mapper.place(&job, &mostly_fast, 4).unwrap();
    assert!(second.alpha < first.alpha);
}

#[test]
fn the_same_shape_on_other_servers_is_mapped_alike() {
    let job = graph(&random_stages(5, 12));
    let mut mapper = mapper();
    let first = mapper.place(&job, &servers(&[8, 4, 0, 0]), 12).unwrap();
    let second = mapper.place(&job, &servers(&[0, 0, 4, 8]), 12).unwrap();
    assert_eq!((first.ranks, first.alpha), (second.ranks, second.alpha));
    assert_eq!(second.slots, [Slot { server: 3, count: 8 }, Slot { server: 2, count: 4 }]);
}

#[test]
fn a_random_mapping_follows_from_its_seed() {
    let place = |seed| {
        let selection = Selection::Random(seed);
        let mut mapper = Mapper::new(MapperOptions { selection, ..Default::default() });
        mapper.place(&graph(&random_stages(3, 12)), &servers(&[6; 8]), 12).unwrap()
    };
    assert_eq!(place(7), place(7));
    assert!((0..8).any(|seed| place(seed).slots != place(7).slots), "another seed, other servers");
    assert!((0..8).any(|seed| place(seed).ranks != place(7).ranks), "another seed, other replicas");
}

#[test]
fn a_random_mapper_knows_the_bounds_of_a_tight_one() {
    let job = graph(&random_stages(9, 12));
    let options = MapperOptions { selection: Selection::Random(1), ..Default::default() };
    let bounds = Mapper::new(options).bounds(&job, &servers(&[8; 4]));
    assert_eq!(bounds, mapper().bounds(&job, &servers(&[8; 4])));
}
