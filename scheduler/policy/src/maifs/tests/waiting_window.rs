//! Step 6 of section 7: which job of the window has to start.

use std::collections::BTreeSet;

use cohabit_types::{JobId, Span, Time};

use crate::maifs::waiting_window::WaitingJobs;
use crate::placement::Profile;
use crate::queue::unplaceable::UnplaceableDemands;
use crate::tests::kit::{gpus, job, node, view};
use crate::{FreeNodes, PendingJob};

/// A wait is long by what others wait, and by what a job is expected to take.
#[test]
fn a_job_that_waits_for_too_long_has_the_first_place() {
    let taking = |job: &PendingJob, seconds| {
        let runtime = Span::from_secs(seconds);
        Profile { runtime, ..Profile::flat(&job.demand, &job.traits) }
    };
    let [long, short, started] = [1, 2, 3].map(|number| job(number, gpus(1)));
    let mut view = view(vec![node(1, &[1_000])], vec![long.clone(), short.clone()]);
    let mut waiting = WaitingJobs::default();
    waiting.insert(&long, &taking(&long, 60));
    waiting.insert(&short, &taking(&short, 1));
    let mut due = |after: u64, waiting: &WaitingJobs| {
        view.now = Time::EPOCH + Span::from_secs(after);
        let (free, mut known) = (FreeNodes::new(&view.nodes), UnplaceableDemands::default());
        let window = waiting.window(&view, &free, &mut known, &BTreeSet::new(), &mut |_| true);
        window.1.then(|| window.0[0].number)
    };
    // Four times a day and a second, or a minute.
    for (after, first) in [(345_600, None), (345_700, Some(2)), (345_900, Some(1))] {
        assert_eq!(due(after, &waiting), first, "after {after} s");
    }
    waiting.insert(&started, &taking(&started, 1));
    waiting.started(JobId::new(3), Time::EPOCH + Span::from_secs(36_000));
    for (after, first) in [(345_900, None), (359_900, None), (360_100, Some(1))] {
        assert_eq!(due(after, &waiting), first, "after {after} s, where others wait for 10 h");
    }
}
