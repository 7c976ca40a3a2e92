//! Chooses which workloads run together: all combinations of a size, or a balanced sample.
//!
//! Pure. Each combination is one of those whose members were chosen least often before, so every prefix of
//! the list covers the workloads as evenly as its length allows.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// At most this many combinations of this size of the workloads 0 to `count` - 1, in the order in which they
/// should be measured. A workload may occur twice. The members of each combination ascend.
pub(super) fn combinations(count: usize, size: usize, most: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut left = all(count, size);
    shuffle(&mut left, seed.wrapping_add(size as u64));
    let mut taken = vec![0_usize; count];
    let mut chosen = Vec::new();
    while chosen.len() < most
        && let Some(next) = least_taken(&left, &taken, size)
    {
        let combination = left.swap_remove(next);
        combination.iter().for_each(|member| taken[*member] += 1);
        chosen.push(combination);
    }
    chosen
}

/// All ascending lists of this length, with repetition.
fn all(count: usize, size: usize) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new()];
    for _ in 0..size {
        let longer = |list: &Vec<usize>| {
            let from = list.last().copied().unwrap_or(0);
            let list = list.clone();
            (from..count).map(move |member| [list.clone(), vec![member]].concat()).collect::<Vec<_>>()
        };
        lists = lists.iter().flat_map(longer).collect();
    }
    lists
}

fn shuffle(lists: &mut [Vec<usize>], seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for last in (1..lists.len()).rev() {
        let other = (u128::from(random.next_u64()) * (last as u128 + 1)) >> 64;
        lists.swap(last, other as usize);
    }
}

/// The first with the smallest cost.
fn least_taken(lists: &[Vec<usize>], taken: &[usize], size: usize) -> Option<usize> {
    let cheapest = lowest_cost(taken, size);
    let mut best: Option<(usize, usize)> = None;
    for (at, list) in lists.iter().enumerate() {
        let cost = cost(list, taken);
        if best.is_none_or(|(_, least)| cost < least) {
            best = Some((at, cost));
        }
        if cost <= cheapest {
            break;
        }
    }
    best.map(|(at, _)| at)
}

/// How often its members were chosen, counted one after the other: the same unused workload twice costs more
/// than two unused ones.
fn cost(list: &[usize], taken: &[usize]) -> usize {
    let again = |at: usize| list[..at].iter().filter(|before| **before == list[at]).count();
    list.iter().enumerate().map(|(at, member)| taken[*member] + again(at)).sum()
}

/// A lower bound of the cost.
fn lowest_cost(taken: &[usize], size: usize) -> usize {
    let mut least = taken.to_vec();
    least.sort_unstable();
    least.iter().take(size).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn where_there_is_room_every_combination_comes_once() {
        let pairs = combinations(4, 2, 1_000, 7);
        let distinct: BTreeSet<&Vec<usize>> = pairs.iter().collect();
        assert_eq!((pairs.len(), distinct.len()), (10, 10));
        assert!(pairs.iter().all(|pair| pair[0] <= pair[1] && pair[1] < 4), "{pairs:?}");
        assert_eq!(combinations(4, 3, 1_000, 7).len(), 20);
        assert_eq!(combinations(0, 2, 1_000, 7), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn every_beginning_of_the_list_covers_the_workloads_evenly() {
        for seed in 0..20 {
            let pairs = combinations(25, 2, 150, seed);
            assert_eq!(pairs.len(), 150);
            let mut taken = [0_usize; 25];
            for (number, pair) in pairs.iter().enumerate() {
                pair.iter().for_each(|member| taken[*member] += 1);
                let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
                assert!(most - least <= 2, "after {number} pairs of seed {seed}: {taken:?}");
            }
        }
        let first: BTreeSet<usize> = combinations(24, 3, 8, 3).concat().into_iter().collect();
        assert_eq!(first.len(), 24, "eight triples cover 24 workloads");
    }

    #[test]
    fn a_seed_always_gives_the_same_and_another_gives_others() {
        assert_eq!(combinations(25, 2, 30, 1), combinations(25, 2, 30, 1));
        assert_ne!(combinations(25, 2, 30, 1), combinations(25, 2, 30, 2));
    }
}
