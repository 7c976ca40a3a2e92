//! Ranks as threads of one process, over loopback as between machines.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use super::*;

/// What each rank of a team of so many makes of it, in the order of ranks.
pub(crate) fn together<T: Send>(ranks: u32, work: impl Fn(ProcessGroup) -> T + Sync) -> Vec<T> {
    let meeting = meeting(ranks);
    let form_ring = |rank| ProcessGroup::meet(&RankRendezvous { rank, ..meeting.clone() }).unwrap();
    thread::scope(|scope| {
        // The first comes last, as it may.
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

/// At a port that was free a moment ago.
fn meeting(ranks: u32) -> RankRendezvous {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    RankRendezvous { name: format!("test {port}"), rank: 0, ranks, host: "127.0.0.1".into(), port }
}

/// Values without a pattern.
fn drawn(rank: u32, count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index as f32 + 1.0) * 0.37 + rank as f32 * 1.7).sin()).collect()
}

#[test]
fn every_rank_hears_the_same_sums_of_any_number_of_values() {
    for ranks in 2..=5 {
        for count in [0, 1, 2, 7, 10_000] {
            let sums = together(ranks, |mut team| {
                let mut values = drawn(team.shard().rank, count);
                team.sum(&mut values).unwrap();
                values
            });
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{count} values, {ranks} ranks");
            let given: Vec<_> = (0..ranks).map(|rank| drawn(rank, count)).collect();
            for (index, sum) in sums[0].iter().enumerate() {
                let expected: f32 = given.iter().map(|values| values[index]).sum();
                assert!((sum - expected).abs() < 1e-5, "{sum} and {expected}");
            }
        }
    }
}

#[test]
fn large_sums_do_not_wait_for_each_other() {
    let sums = together(2, |mut team| {
        let mut values = vec![1.0; 4 << 20];
        team.sum(&mut values).unwrap();
        values.iter().all(|value| *value == 2.0)
    });
    assert_eq!(sums, [true, true]);
}

#[test]
fn what_one_rank_wishes_all_do() {
    let agreed = together(3, |mut team| {
        let end = team.shard().rank == 2;
        team.agree(SignalRequests { end, checkpoint: false }).unwrap()
    });
    assert_eq!(agreed, [SignalRequests { end: true, checkpoint: false }; 3]);
    let agreed = together(2, |mut team| team.agree(SignalRequests::default()).unwrap());
    assert_eq!(agreed, [SignalRequests::default(); 2]);
}

#[test]
fn the_first_rank_tells_all_others() {
    let word = vec![7; 100_000];
    let heard = together(3, |mut team| team.broadcast_from_first(|| Ok(word.clone())).unwrap());
    assert_eq!(heard, [None, Some(word.clone()), Some(word.clone())]);
}

#[test]
fn a_rank_that_is_gone_is_an_error_for_the_others() {
    let outcomes = together(3, |mut team| match team.shard().rank {
        1 => None,
        _ => {
            let mut values = vec![1.0; 1 << 20];
            Some((0..3).any(|_| team.sum(&mut values).is_err()))
        }
    });
    assert_eq!(outcomes, [Some(true), None, Some(true)]);
}

#[test]
fn strangers_at_the_door_are_turned_away() {
    let meeting = meeting(2);
    let (say, said) = mpsc::channel();
    thread::scope(|scope| {
        let first = scope.spawn(|| ProcessGroup::meet(&meeting).is_ok());
        let stranger = |greeting: &str| loop {
            let Ok(mut stream) = TcpStream::connect((meeting.host.as_str(), meeting.port)) else { continue };
            stream.write_all(greeting.as_bytes()).unwrap();
            // Hung up on, without a word.
            break assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0, "{greeting}");
        };
        stranger("GET / HTTP/1.1\r\n\r\n");
        stranger("{\"name\":\"another\",\"rank\":1,\"ranks\":2,\"port\":1}\n");
        say.send(ProcessGroup::meet(&RankRendezvous { rank: 1, ..meeting.clone() }).is_ok()).unwrap();
        assert!(first.join().unwrap() && said.recv().unwrap());
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
