//! The sentences about decisions of A-SRPT: short, with times and numbers, without a full stop at the end.
//!
//! Nothing is decided here.

use cohabit_types::{Share, Span, Time};

use super::queue_state::Entry;
use crate::Proposal;
use crate::queue::virtual_srpt_machine::VirtualJob;

/// Why a job starts now and there.
pub(super) fn explain_start(now: Time, entry: &Entry, proposal: &Proposal) -> String {
    let turn = match entry.turn_at {
        None => "GPUs were idle before its virtual turn".to_owned(),
        Some(at) => {
            let came =
                format!("its virtual turn came {} after it could first run", at.since(entry.arrived_at));
            match now.since(entry.queued_at) {
                Span::ZERO => came,
                wait => format!("{came}, then it waited {wait} for resources"),
            }
        }
    };
    match proposal.why.as_str() {
        "" => turn,
        place => format!("{turn}; {place}"),
    }
}

/// Why a job does not start although it fits.
pub(super) fn explain_delay(now: Time, until: Time, proposal: &Proposal) -> String {
    let slowdown = proposal.slowdown;
    let price = format!(
        "waits for a faster placement: an iteration would now take {slowdown:.2} times as long as in the best one"
    );
    match until {
        Time::NEVER => format!("{price}. Accepts such a placement only after its virtual turn"),
        until => format!("{price}. Starts anyway in {}", until.since(now)),
    }
}

/// Why a job waits whose virtual turn has not come.
pub(super) fn explain_turn(now: Time, task: &VirtualJob, turn_at: Option<Time>, ahead: usize) -> String {
    let micros = task.left.div_ceil(u128::from(Share::WHOLE.0));
    let left = Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
    let order = match ahead {
        0 => "no job is ahead".to_owned(),
        1 => "1 job with less time left is ahead".to_owned(),
        _ => format!("{ahead} jobs with less time left are ahead"),
    };
    let turn = match turn_at {
        Some(at) => format!("its turn comes in {} if no smaller job arrives", at.since(now)),
        None => "its turn comes once a worker accepts jobs".to_owned(),
    };
    format!(
        "waits for its virtual turn: it has {left} of GPU time left on the virtual machine, and {order}; {turn}"
    )
}
