//! What people read about a decision of A-SRPT: short sentences with spans and numbers, without full stops.
//!
//! Nothing is decided here.

use cohabit_types::{Share, Span, Time};

use super::queue_state::Entry;
use super::round::DelayReason;
use super::virtual_srpt_machine::VirtualJob;
use crate::Proposal;

/// Why a job starts now and there.
pub(super) fn explain_start(now: Time, entry: &Entry, proposal: &Proposal) -> String {
    let turn = match entry.turn_at {
        None => "devices were idle before its virtual turn".to_owned(),
        Some(at) => {
            let came =
                format!("its virtual turn came {} after it could first run", at.since(entry.arrived_at));
            match now.since(entry.queued_at) {
                Span::ZERO => came,
                wait => format!("{came}, and it waited {wait} for room"),
            }
        }
    };
    match proposal.why.as_str() {
        "" => turn,
        place => format!("{turn}; {place}"),
    }
}

/// Why a job does not start though there is room.
pub(super) fn explain_delay(now: Time, until: Time, what: DelayReason, proposal: &Proposal) -> String {
    match what {
        DelayReason::BetterPlace => explain_better_place_delay(now, until, proposal),
        DelayReason::OwnDevice(at) => explain_own_device_delay(now, until, at, proposal),
    }
}

fn explain_own_device_delay(now: Time, until: Time, at: Time, proposal: &Proposal) -> String {
    let slowdown = proposal.slowdown;
    let (comes, delay) = (at.since(now), proposal.delay);
    format!(
        "beside others it would take {slowdown:.2} times as long as alone, and with them be later by {delay} \
         together; a device of its own is expected in {comes}, so it waits; it joins them anyway in {}",
        until.since(now)
    )
}

fn explain_better_place_delay(now: Time, until: Time, proposal: &Proposal) -> String {
    let slowdown = proposal.slowdown;
    let price = format!("it holds out for a better place: here an iteration takes {slowdown:.2} x the best");
    match until {
        Time::NEVER => format!("{price}; it takes such a place only once its virtual turn has come"),
        until => format!("{price}; it starts anyway in {}", until.since(now)),
    }
}

/// What a job waits for whose virtual turn has not come.
pub(super) fn explain_turn(now: Time, task: &VirtualJob, turn_at: Option<Time>, ahead: usize) -> String {
    let micros = task.left.div_ceil(u128::from(Share::WHOLE.0));
    let left = Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
    let order = match ahead {
        0 => "no job goes before it".to_owned(),
        1 => "1 job with less left goes before it".to_owned(),
        _ => format!("{ahead} jobs with less left go before it"),
    };
    let turn = match turn_at {
        Some(at) => format!("in {} if no smaller job arrives", at.since(now)),
        None => "once a worker is connected that takes jobs".to_owned(),
    };
    format!("on the virtual machine {left} of one device are left of it and {order}: its turn comes {turn}")
}
