//! The queue compared with a sorted list: whatever comes and goes, a walk meets the same jobs in the same
//! order.

use std::collections::BTreeSet;

use cohabit_fair_share::Line;
use cohabit_types::JobId;
use proptest::prelude::*;

use super::kit::gpus;
use crate::queue::QueuedJob;
use crate::{ClassKey, PendingQueue};

proptest! {
    #[test]
    fn a_walk_meets_the_open_jobs_in_their_order(
        steps in prop::collection::vec((1_u64..30, 0_u32..4, 0_u32..10, any::<bool>()), 0..80),
        closing in prop::collection::btree_set(0_u32..4, 0..4),
    ) {
        let mut queue = PendingQueue::default();
        let mut naive: Vec<(u32, JobId, u32)> = Vec::new();
        for (number, class, key, arrives) in steps {
            let job = JobId::new(number);
            let known = naive.iter().find(|it| it.1 == job).map(|it| it.0);
            naive.retain(|it| it.1 != job);
            if arrives {
                let queued = QueuedJob { id: job, line: Line::default(), demand: gpus(class) };
                queue.insert(&queued, ClassKey::Resources(gpus(class)), key);
                naive.push((key, job, class));
            } else {
                prop_assert_eq!(queue.remove(job), known);
            }
        }
        naive.sort_unstable();
        prop_assert_eq!(queue.len(), naive.len());
        prop_assert_eq!(queue.is_empty(), naive.is_empty());
        let class_of = |job: JobId| naive.iter().find(|it| it.1 == job).map(|it| it.2).unwrap();
        let mut fronts = BTreeSet::new();
        let first: Vec<JobId> =
            naive.iter().filter(|it| fronts.insert(it.2)).map(|it| it.1).collect();
        prop_assert_eq!(queue.fronts().map(|turn| turn.job).collect::<Vec<_>>(), first);
        let mut walk = queue.walk(None);
        let mut met = Vec::new();
        while let Some(turn) = walk.next() {
            met.push(turn.job);
            if closing.contains(&class_of(turn.job)) {
                walk.close();
            }
        }
        let mut closed = BTreeSet::new();
        let open = |it: &&(u32, JobId, u32)| !closing.contains(&it.2) || closed.insert(it.2);
        prop_assert_eq!(met, naive.iter().filter(open).map(|it| it.1).collect::<Vec<_>>());
    }
}
