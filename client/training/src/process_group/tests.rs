//! Ranks as threads of one process, connected over loopback.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use super::*;

/// Runs `work` on each rank of a group of this size; the results are in the order of ranks.
pub(crate) fn run_ranks<T: Send>(ranks: u32, work: impl Fn(ProcessGroup) -> T + Sync) -> Vec<T> {
    let rendezvous = rendezvous(ranks);
    let form_ring = |rank| ProcessGroup::join(&RankRendezvous { rank, ..rendezvous.clone() }).unwrap();
    thread::scope(|scope| {
        // The first rank starts last, which is allowed.
        let running: Vec<_> = (0..ranks)
            .rev()
            .map(|rank| {
                scope.spawn({
                    let work = &work;
                    let form_ring = &form_ring;
                    move || work(form_ring(rank))
                })
            })
            .collect();
        running.into_iter().rev().map(|rank| rank.join().unwrap()).collect()
    })
}

/// A rendezvous at a port that was free a moment ago.
fn rendezvous(ranks: u32) -> RankRendezvous {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    RankRendezvous { name: format!("test {port}"), rank: 0, ranks, host: "127.0.0.1".into(), port }
}

/// Irregular values.
fn irregular_values(rank: u32, count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index as f32 + 1.0) * 0.37 + rank as f32 * 1.7).sin()).collect()
}

#[test]
fn every_rank_gets_the_same_sums_of_any_number_of_values() {
    for ranks in 2..=5 {
        for count in [0, 1, 2, 7, 10_000] {
            let sums = run_ranks(ranks, |mut group| {
                let mut values = irregular_values(group.shard().rank, count);
                group.sum(&mut values).unwrap();
                values
            });
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{count} values, {ranks} ranks");
            let given: Vec<_> = (0..ranks).map(|rank| irregular_values(rank, count)).collect();
            for (index, sum) in sums[0].iter().enumerate() {
                let expected: f32 = given.iter().map(|values| values[index]).sum();
                assert!((sum - expected).abs() < 1e-5, "{sum} and {expected}");
            }
        }
    }
}

#[test]
fn large_sums_do_not_deadlock() {
    let sums = run_ranks(2, |mut group| {
        let mut values = vec![1.0; 4 << 20];
        group.sum(&mut values).unwrap();
        values.iter().all(|value| *value == 2.0)
    });
    assert_eq!(sums, [true, true]);
}

#[test]
fn what_one_rank_requests_all_ranks_do() {
    let agreed = run_ranks(3, |mut group| {
        let end = group.shard().rank == 2;
        group.agree(SignalRequests { end, checkpoint: false }).unwrap()
    });
    assert_eq!(agreed, [SignalRequests { end: true, checkpoint: false }; 3]);
    let agreed = run_ranks(2, |mut group| group.agree(SignalRequests::default()).unwrap());
    assert_eq!(agreed, [SignalRequests::default(); 2]);
}

#[test]
fn the_first_rank_broadcasts_to_all_others() {
    let word = vec![7; 100_000];
    let received = run_ranks(3, |mut group| group.broadcast_from_first(|| Ok(word.clone())).unwrap());
    assert_eq!(received, [None, Some(word.clone()), Some(word.clone())]);
}

#[test]
fn a_rank_that_is_gone_is_an_error_for_the_others() {
    let outcomes = run_ranks(3, |mut group| match group.shard().rank {
        1 => None,
        _ => {
            let mut values = vec![1.0; 1 << 20];
            Some((0..3).any(|_| group.sum(&mut values).is_err()))
        }
    });
    assert_eq!(outcomes, [Some(true), None, Some(true)]);
}

#[test]
fn connections_of_others_are_rejected() {
    let rendezvous = rendezvous(2);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let first = scope.spawn(|| ProcessGroup::join(&rendezvous).is_ok());
        let connect = |hello: &str| loop {
            let Ok(mut stream) = TcpStream::connect((rendezvous.host.as_str(), rendezvous.port)) else {
                continue;
            };
            stream.write_all(hello.as_bytes()).unwrap();
            // The connection is closed without an answer.
            break assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0, "{hello}");
        };
        connect("GET / HTTP/1.1\r\n\r\n");
        connect("{\"name\":\"another\",\"rank\":1,\"ranks\":2,\"port\":1}\n");
        sender.send(ProcessGroup::join(&RankRendezvous { rank: 1, ..rendezvous.clone() }).is_ok()).unwrap();
        assert!(first.join().unwrap() && receiver.recv().unwrap());
    });
}

#[test]
fn every_example_is_in_one_shard_and_counts_once() {
    let examples: Vec<u32> = (0..10).collect();
    for ranks in 1..=13 {
        let parts: Vec<_> = (0..ranks).map(|rank| Shard { rank, ranks }.part(&examples)).collect();
        let counted: Vec<u32> =
            parts.iter().filter(|(_, weight)| *weight > 0.0).flat_map(|(part, _)| part.to_vec()).collect();
        assert_eq!(counted, examples);
        let total: f64 = parts.iter().map(|(_, weight)| weight).sum();
        assert!((total - 1.0).abs() < 1e-12 && parts.iter().all(|(part, _)| !part.is_empty()));
    }
}
