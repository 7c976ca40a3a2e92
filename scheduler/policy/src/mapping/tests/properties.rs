//! What holds for every job, every cluster and every option.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::reference::Placed;
use super::{model, of_model, server};
use crate::mapping::{
    IterationModel, JobGraph, Mapper, MapperOptions, NicShare, Selection, Server, Slot, Toggle,
};
use cohabit_types::ModelDescription;

fn any_model() -> impl Strategy<Value = ModelDescription> {
    let stage = (1..6_u32, 0.0..0.5, 0.0..1e9, 0.0..1e9, prop::option::of(0.0..0.5));
    prop::collection::vec(stage, 1..6).prop_map(|stages| {
        let words: Vec<_> = stages.iter().map(|it| (it.0, it.1, it.2, it.3)).collect();
        let mut described = model(&words);
        for (stage, words) in described.stages.iter_mut().zip(&stages) {
            stage.compute_seconds_on =
                words.4.map(|seconds| ("A100".to_owned(), seconds)).into_iter().collect();
        }
        described
    })
}

fn any_server() -> impl Strategy<Value = Server> {
    let kind = prop::sample::select(vec!["V100", "A100"]);
    (1..9_u32, 0..9_u32, prop::sample::select(vec![1e8, 1e9, 1e11]), 1e10..1e11, kind).prop_map(
        |(devices, free, network, interconnect, kind)| {
            let plain = Server { network, interconnect, ..server(free.min(devices), devices) };
            of_model(plain, kind)
        },
    )
}

fn any_options() -> impl Strategy<Value = MapperOptions> {
    let selection = prop_oneof![
        Just(Selection::Consolidate),
        Just(Selection::Fragments),
        any::<u64>().prop_map(Selection::Random)
    ];
    let iteration = prop_oneof![
        Just(IterationModel::Bottleneck),
        (1..9_u32).prop_map(|micro_batches| IterationModel::Synchronous { micro_batches })
    ];
    let switch = || prop::sample::select(vec![Toggle::On, Toggle::Off]);
    let nic_share = prop::sample::select(vec![NicShare::Device, NicShare::Job]);
    (selection, iteration, nic_share, switch(), switch()).prop_map(
        |(selection, iteration, nic_share, multi_start, swaps)| MapperOptions {
            selection,
            iteration,
            nic_share,
            multi_start,
            swaps,
        },
    )
}

proptest! {
    #[test]
    fn a_mapping_is_sound_and_its_time_is_that_of_the_definition(
        described in any_model(),
        servers in prop::collection::vec(any_server(), 1..8),
        options in any_options()
    ) {
        let devices = described.stages.iter().map(|stage| stage.replicas).sum();
        let job = JobGraph::of(&described, devices).unwrap();
        let free: u32 = servers.iter().map(|server| server.free).sum();
        let mut mapper = Mapper::new(options.clone());
        let found = mapper.place(&job, &servers, devices);
        prop_assert_eq!(found.is_some(), free >= devices);
        let Some(mapping) = found else { return Ok(()) };

        let distinct: BTreeSet<usize> = mapping.slots.iter().map(|slot| slot.server).collect();
        prop_assert_eq!(distinct.len(), mapping.slots.len());
        for (slot, ranks) in mapping.slots.iter().zip(&mapping.ranks) {
            prop_assert!((1..=servers[slot.server].free).contains(&slot.count));
            prop_assert_eq!(ranks.len(), slot.count as usize);
            prop_assert!(ranks.is_sorted());
        }
        let mut all: Vec<u32> = mapping.ranks.concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..devices).collect::<Vec<_>>());

        let placed = Placed::of_ranks(&described, &servers, &mapping.slots, &mapping.ranks);
        let defined = placed.alpha(options.iteration, options.nic_share);
        prop_assert!((mapping.alpha - defined).abs() <= 1e-9 * defined, "{} is not {defined}", mapping.alpha);

        let home = |rank: u32| mapping.ranks.iter().position(|ranks| ranks.contains(&rank)).unwrap();
        let homes: Vec<usize> = (0..devices).map(|rank| mapping.slots[home(rank)].server).collect();
        let given = mapper.given(&job, &servers, &homes);
        prop_assert!((given - mapping.alpha).abs() <= 1e-9 * given, "{given} is not {}", mapping.alpha);

        let mut next = 0..devices;
        let counted = |slot: &Slot| next.by_ref().take(slot.count as usize).collect();
        let in_order: Vec<Vec<u32>> = mapping.slots.iter().map(counted).collect();
        let placed = Placed::of_ranks(&described, &servers, &mapping.slots, &in_order);
        let defined = placed.alpha(options.iteration, options.nic_share);
        let consecutive = mapper.consecutive(&job, &servers, &mapping.slots);
        prop_assert!((consecutive - defined).abs() <= 1e-9 * defined, "{consecutive} is not {defined}");

        let bounds = mapper.bounds(&job, &servers);
        let (low, high) = (1.0 - 1e-9, 1.0 + 1e-9);
        prop_assert!(bounds.floor * low <= mapping.alpha && mapping.alpha <= bounds.slowest * high);
        prop_assert!(bounds.floor * low <= bounds.fastest && bounds.fastest <= bounds.slowest);
        prop_assert_eq!(Mapper::new(options).place(&job, &servers, devices), Some(mapping));
    }

    #[test]
    fn a_stage_on_some_servers_crosses_the_network_on_no_more_ring_links(
        described in any_model(), servers in prop::collection::vec(any_server(), 3..8)
    ) {
        let devices = described.stages.iter().map(|stage| stage.replicas).sum();
        let job = JobGraph::of(&described, devices).unwrap();
        let found = Mapper::new(MapperOptions::default()).place(&job, &servers, devices);
        let Some(mapping) = found else { return Ok(()) };
        let slot = |rank: u32| mapping.ranks.iter().position(|ranks| ranks.contains(&rank)).unwrap();
        let mut first = 0;
        for stage in &described.stages {
            let ring: Vec<usize> = (first..first + stage.replicas).map(slot).collect();
            let used: BTreeMap<usize, ()> = ring.iter().map(|slot| (*slot, ())).collect();
            let crossing = (0..ring.len()).filter(|at| ring[*at] != ring[(at + 1) % ring.len()]).count();
            prop_assert!(crossing <= used.len(), "{crossing} links for {} servers", used.len());
            first += stage.replicas;
        }
    }

    #[test]
    fn each_refinement_is_no_slower(
        described in any_model(), servers in prop::collection::vec(any_server(), 1..8)
    ) {
        let devices = described.stages.iter().map(|stage| stage.replicas).sum();
        let job = JobGraph::of(&described, devices).unwrap();
        let alpha = |multi_start, swaps| {
            let options = MapperOptions { multi_start, swaps, ..Default::default() };
            Mapper::new(options).place(&job, &servers, devices).map(|mapping| mapping.alpha)
        };
        let plain = alpha(Toggle::Off, Toggle::Off);
        prop_assert!(alpha(Toggle::On, Toggle::Off) <= plain);
        prop_assert!(alpha(Toggle::Off, Toggle::On) <= plain);
        prop_assert!(alpha(Toggle::On, Toggle::On) <= alpha(Toggle::On, Toggle::Off));
    }
}
