//! Numbers that can be worked out by hand.

use std::collections::BTreeMap;

use cohabit_types::ModelDescription;

use super::{GIGABYTE, INTERCONNECT, TEN_GIGABIT, graph, model, of_model, server, servers};
use crate::mapping::{
    IterationModel, JobGraph, Mapper, MapperOptions, Mapping, NicShare, Server, Slot, Toggle,
};

/// Seconds to send bytes one way over one of eight shares of a card.
fn leaving(bytes: f64) -> f64 {
    bytes / (TEN_GIGABIT / 8.0)
}

/// Seconds to send bytes one way within the server.
fn staying(bytes: f64) -> f64 {
    bytes / INTERCONNECT
}

fn slots(counts: &[u32]) -> Vec<Slot> {
    counts.iter().enumerate().map(|(server, count)| Slot { server, count: *count }).collect()
}

fn map(graph: &JobGraph, servers: &[Server], counts: &[u32]) -> Mapping {
    Mapper::new(MapperOptions::default()).map(graph, servers, slots(counts))
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 * expected, "{found} is not {expected}");
}

#[test]
fn a_single_device_only_computes() {
    let bounds = Mapper::new(MapperOptions::default()).bounds(&graph(&[(1, 0.25, 9e9, 9e9)]), &servers(&[8]));
    assert_eq!((bounds.floor, bounds.fastest, bounds.slowest), (0.25, 0.25, 0.25));
}

/// `2 m (w - 1) / (w B)`, as in *On Scheduling Ring-All-Reduce Learning Jobs* (Yu, Ji, Rajan, Liu; arXiv
/// 2207.07817): `m` bytes of gradients, `w` workers, and the bandwidth `B` of the slowest link of the ring.
fn all_reduce(gradients: f64, workers: u32, bandwidth: f64) -> f64 {
    2.0 * gradients * f64::from(workers - 1) / (f64::from(workers) * bandwidth)
}

#[test]
fn two_replicas_exchange_their_gradients_once_each_way() {
    let job = graph(&[(2, 0.1, 0.0, GIGABYTE)]);
    // The two links of the ring connect one pair, one each way: 1 GB at 50 GB/s, or at 156.25 MB/s.
    assert_close(map(&job, &servers(&[8]), &[2]).alpha, 0.1 + 0.02);
    assert_close(map(&job, &servers(&[8, 8]), &[1, 1]).alpha, 0.1 + 6.4);
}

#[test]
fn four_replicas_send_one_and_a_half_gradients_to_the_next() {
    let job = graph(&[(4, 0.1, 0.0, GIGABYTE)]);
    assert_close(map(&job, &servers(&[8]), &[4]).alpha, 0.1 + 0.03);
    // The last replica on each server sends 1.5 GB over its share, whatever the others on it do.
    for counts in [&[2, 2][..], &[3, 1], &[2, 1, 1], &[1; 4]] {
        assert_close(map(&job, &servers(&vec![8; counts.len()]), counts).alpha, 0.1 + 9.6);
    }
}

#[test]
fn a_ring_over_servers_takes_as_long_however_many_replicas_are_on_each() {
    let job = |workers| graph(&[(workers, 0.48, 0.0, 574.7e6)]);
    let alpha = |workers, devices: u32, counts: &[u32]| {
        let network = 3.125e9 * f64::from(devices) / 8.0;
        let cluster = vec![Server { network, devices, ..server(devices, devices) }; counts.len()];
        map(&job(workers), &cluster, counts).alpha
    };
    // VGG-19 on 16 devices: 144 million parameters of 4 bytes, and 25 Gb/s for each 8 devices. The longest
    // way is 2 * 574.7 MB * 15 / 16 at 390.625 MB/s.
    let expected = 0.48 + 2.7586;
    let apart = alpha(16, 1, &[1; 16]);
    assert!((apart - expected).abs() < 1e-4, "{apart}");
    assert_close(apart, 0.48 + all_reduce(574.7e6, 16, 390.625e6));
    for counts in [&[8, 8][..], &[8, 4, 4], &[7, 7, 1, 1], &[2; 8], &[1; 16]] {
        assert_close(alpha(16, 8, counts), apart);
    }
    assert_close(alpha(16, 16, &[16]), 0.48 + all_reduce(574.7e6, 16, INTERCONNECT));
    for workers in 2..=24 {
        let counts = [workers - 1, 1];
        assert_close(alpha(workers, 24, &counts), 0.48 + all_reduce(574.7e6, workers, 390.625e6));
    }
}

#[test]
fn a_pooled_card_sends_one_ring_at_its_full_speed() {
    let alpha = |stages: &[_], counts: &[u32]| {
        let mut mapper = Mapper::new(MapperOptions { nic_share: NicShare::Job, ..Default::default() });
        mapper.map(&graph(stages), &servers(&vec![8; counts.len()]), slots(counts)).alpha
    };
    // One of the two devices on a server sends, so it has both shares.
    assert_close(
        alpha(&[(4, 0.1, 0.0, GIGABYTE)], &[2, 2]),
        0.1 + all_reduce(GIGABYTE, 4, TEN_GIGABIT / 4.0),
    );
    assert_close(
        alpha(&[(4, 0.1, 0.0, GIGABYTE)], &[1; 4]),
        0.1 + all_reduce(GIGABYTE, 4, TEN_GIGABIT / 8.0),
    );
    // Two rings over both servers share it: while the smaller one sends, half each.
    let two = [(4, 0.1, 0.0, GIGABYTE), (4, 0.1, 0.0, 0.5 * GIGABYTE)];
    let both = all_reduce(GIGABYTE, 4, TEN_GIGABIT / 2.0) + all_reduce(0.5 * GIGABYTE, 4, TEN_GIGABIT / 2.0);
    let mapper = Mapper::new(MapperOptions { nic_share: NicShare::Job, ..Default::default() });
    let job = graph(&two);
    let halves = [0, 0, 1, 1, 0, 0, 1, 1];
    assert_close(mapper.given(&job, &servers(&[8, 8]), &halves), 0.1 + both);
}

#[test]
fn a_pipeline_is_cut_at_its_thinnest_edge() {
    let job = graph(&[(1, 0.1, 4e8, 0.0), (1, 0.1, 1e6, 0.0), (1, 0.1, 4e8, 0.0), (1, 0.1, 0.0, 0.0)]);
    let mapping = map(&job, &servers(&[8, 8]), &[2, 2]);
    let mut ranks = mapping.ranks.clone();
    ranks.sort();
    assert_eq!(ranks, [[0, 1], [2, 3]]);
    // Activations forward, as many bytes of gradients back, at the same time.
    assert_close(mapping.alpha, 0.1 + staying(4e8) + leaving(1e6));
}

#[test]
fn without_several_starts_a_group_grows_from_the_heaviest_edge() {
    let literal = || MapperOptions { multi_start: Toggle::Off, swaps: Toggle::Off, ..Default::default() };
    let ranks = |stages: &[_], counts: &[u32]| {
        let cluster = vec![server(8, 8); counts.len()];
        Mapper::new(literal()).map(&graph(stages), &cluster, slots(counts)).ranks
    };
    let chain = [(1, 0.1, 3e8, 0.0), (1, 0.1, 4e8, 0.0), (1, 0.1, 3e8, 0.0), (1, 0.1, 0.0, 0.0)];
    assert_eq!(ranks(&chain, &[2, 2]), [[1, 2], [0, 3]], "the middle, then what is left");
    let ring = [(2, 0.1, 1e8, 1e9), (1, 0.1, 5e8, 0.0), (1, 0.1, 0.0, 0.0)];
    assert_eq!(ranks(&ring, &[2, 2]), [[0, 1], [2, 3]], "a ring of two is one edge of two links");
    assert_eq!(ranks(&ring, &[3, 1]), [vec![0, 1, 2], vec![3]]);
    let closing = [(3, 0.1, 1.2e9, 0.75e9), (1, 0.1, 0.0, 0.0)];
    assert_eq!(ranks(&closing, &[3, 1]), [vec![0, 1, 2], vec![3]], "the last of a ring brings two links");
    assert_eq!(ranks(&ring, &[1; 4]), [[3], [2], [0], [1]], "the loneliest first");
}

#[test]
fn ranks_that_number_themselves_are_on_the_slots_in_order() {
    let job = graph(&[(1, 0.1, 4e8, 0.0), (1, 0.1, 1e6, 0.0), (1, 0.1, 4e8, 0.0), (1, 0.1, 0.0, 0.0)]);
    let mapper = Mapper::new(MapperOptions::default());
    let alpha = |counts: &[u32]| mapper.consecutive(&job, &servers(&[8, 8]), &slots(counts));
    assert_close(alpha(&[2, 2]), 0.1 + staying(4e8) + leaving(1e6));
    assert_close(alpha(&[1, 3]), 0.1 + leaving(4e8) + staying(1e6));
}

#[test]
fn a_pool_lets_a_sender_use_what_its_silent_neighbors_leave() {
    let job = graph(&[(1, 0.1, 1e6, 0.0), (1, 0.1, 4e8, 0.0), (1, 0.1, 0.0, 0.0)]);
    let alpha = |nic_share| {
        let mut mapper = Mapper::new(MapperOptions { nic_share, ..Default::default() });
        mapper.map(&job, &servers(&[8; 2]), slots(&[2, 1])).alpha
    };
    let cut_at_the_light_edge = 0.1 + staying(4e8);
    assert_close(alpha(NicShare::Device), cut_at_the_light_edge + leaving(1e6));
    assert_close(alpha(NicShare::Job), cut_at_the_light_edge + leaving(1e6) / 2.0);
}

#[test]
fn activations_are_split_over_all_pairs_of_replicas() {
    let job = graph(&[(2, 0.1, 8e8, 0.0), (4, 0.05, 0.0, 0.0)]);
    assert_close(map(&job, &servers(&[8]), &[6]).alpha, 0.1 + staying(8e8 / 2.0));
    assert_close(map(&job, &servers(&[8; 6]), &[1; 6]).alpha, 0.1 + leaving(8e8 / 2.0));
}

#[test]
fn a_synchronous_pipeline_fills_runs_and_then_exchanges_gradients() {
    let iteration = IterationModel::Synchronous { micro_batches: 4 };
    let mut mapper = Mapper::new(MapperOptions { iteration, ..Default::default() });
    let job = graph(&[(1, 0.4, 0.0, 0.0), (2, 0.2, 0.0, GIGABYTE)]);
    let alpha = mapper.map(&job, &servers(&[8]), slots(&[3])).alpha;
    assert_close(alpha, (0.6 + 3.0 * 0.4) / 4.0 + staying(GIGABYTE));
}

#[test]
fn the_slow_stage_goes_to_the_fast_devices() {
    let mut described = model(&[(1, 0.1, 1e3, 0.0), (1, 0.4, 0.0, 0.0)]);
    described.stages[1].compute_seconds_on = BTreeMap::from([("A100".to_owned(), 0.1)]);
    let job = JobGraph::of(&described, 2).unwrap();
    let both = [of_model(server(1, 8), "A100"), server(1, 8)];
    let mapping = Mapper::new(MapperOptions::default()).place(&job, &both, 2).unwrap();
    let fast = mapping.slots.iter().position(|slot| slot.server == 0).unwrap();
    assert_eq!(mapping.ranks[fast], [1]);
    assert_close(mapping.alpha, 0.1 + leaving(1e3));
}

#[test]
fn servers_of_one_model_win_where_mixing_would_be_slower() {
    let mut described = model(&[(4, 0.4, 0.0, 1e6)]);
    described.stages[0].compute_seconds_on = BTreeMap::from([("A100".to_owned(), 0.1)]);
    let job = JobGraph::of(&described, 4).unwrap();
    let cluster = [server(3, 8), of_model(server(2, 8), "A100"), of_model(server(2, 8), "A100")];
    let mapping = Mapper::new(MapperOptions::default()).place(&job, &cluster, 4).unwrap();
    let chosen: Vec<_> = mapping.slots.iter().map(|slot| (slot.server, slot.count)).collect();
    assert_eq!(chosen, [(1, 2), (2, 2)], "two A100 servers beat the fuller V100 server with one of them");
}

#[test]
fn the_floor_mixes_the_fastest_and_the_slowest_the_slowest() {
    let mut described = model(&[(2, 0.4, 0.0, GIGABYTE)]);
    described.stages[0].compute_seconds_on = BTreeMap::from([("A100".to_owned(), 0.1)]);
    let job = JobGraph::of(&described, 2).unwrap();
    let cluster = [server(0, 8), of_model(server(0, 8), "A100")];
    let bounds = Mapper::new(MapperOptions::default()).bounds(&job, &cluster);
    assert_close(bounds.floor, 0.1 + staying(GIGABYTE));
    assert_close(bounds.fastest, bounds.floor);
    assert_close(bounds.slowest, 0.4 + leaving(GIGABYTE));
}

#[test]
fn a_job_that_no_cluster_could_hold_has_only_extremes() {
    let job = graph(&[(4, 0.1, 0.0, GIGABYTE)]);
    let mut mapper = Mapper::new(MapperOptions::default());
    let small = mapper.bounds(&job, &[server(2, 2)]);
    assert_eq!(small.fastest, small.slowest);
    let none = mapper.bounds(&job, &[]);
    assert_eq!((none.floor, none.fastest, none.slowest), (0.1, 0.1, 0.1));
}

#[test]
fn a_dead_network_costs_forever_only_what_crosses_it() {
    let cut = || Server { network: 0.0, ..server(4, 4) };
    let quiet = map(&graph(&[(2, 0.1, 0.0, 0.0)]), &[cut(), cut()], &[1, 1]).alpha;
    assert_eq!(quiet, 0.1);
    assert_eq!(map(&graph(&[(2, 0.1, 0.0, 1.0)]), &[cut(), cut()], &[1, 1]).alpha, f64::INFINITY);
}

#[test]
fn only_a_sound_description_has_a_graph() {
    let sound = (2, 0.1, 1e6, 1e6);
    assert!(JobGraph::of(&model(&[sound]), 2).is_some());
    assert!(JobGraph::of(&ModelDescription::default(), 0).is_none(), "no stages");
    assert!(JobGraph::of(&model(&[sound]), 3).is_none(), "another number of devices");
    assert!(JobGraph::of(&model(&[sound, (0, 0.1, 0.0, 0.0)]), 2).is_none(), "no replicas");
    assert!(JobGraph::of(&model(&[(u32::MAX, 0.1, 0.0, 0.0), sound]), 1).is_none(), "too many replicas");
    for wrong in
        [(2, f64::NAN, 0.0, 0.0), (2, 0.1, -1.0, 0.0), (2, 0.1, 0.0, f64::INFINITY), (2, 0.1, 0.0, f64::MAX)]
    {
        assert!(JobGraph::of(&model(&[wrong]), 2).is_none(), "{wrong:?}");
    }
}
