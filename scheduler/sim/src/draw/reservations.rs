//! Draws reservations of nodes, for maintenance or for some users, all of which end before the quiet phase.

use std::collections::BTreeSet;

use cohabit_types::{ReservationAccess, ReservationRequest, Span};

use super::random_time::random_time;
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario};

/// After the quiet phase has begun, all reservations are cancelled so often, each time after twice as long:
/// the head may be down at first, and its clock may have been set back.
const LAST_CANCELS: u32 = 10;

/// Draws them in half of the scenarios.
pub(super) fn draw(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "reservations");
    if !random.chance(0.5) {
        return;
    }
    let users: BTreeSet<String> = scenario.submissions.iter().map(|it| it.user.clone()).collect();
    let count = random.between(1, 4);
    for _ in 0..count {
        let at = random_time(&mut random, scenario);
        let left = scenario.quiet_at.since(at);
        let ahead = random.span((Span::ZERO, left.min(Span::from_secs(3_600))));
        let is_maintenance = random.chance(0.5);
        let admitted = users.iter().filter(|_| !is_maintenance && random.chance(0.3)).cloned().collect();
        let reserved = scenario.shapes.iter().filter(|_| random.chance(0.5));
        let request = ReservationRequest {
            nodes: reserved.map(|shape| shape.name.clone()).collect(),
            from: Some(at + ahead),
            length: Some(random.span((Span::from_secs(60), Span::from_secs(3_600)))),
            admits: ReservationAccess { users: admitted, ..ReservationAccess::default() },
            reason: None,
            stop_jobs: random.chance(0.7),
        };
        scenario.external_events.push((at, ExternalEvent::Reserve(Box::new(request))));
        if random.chance(0.2) {
            let later = at + random.span((Span::ZERO, left));
            let number = random.between(1, count);
            scenario.external_events.push((later, ExternalEvent::CancelReservation(number)));
        }
    }
    for number in 0..LAST_CANCELS {
        let at = scenario.quiet_at + Span::from_secs(60 << number);
        let cancels = (1..=count).map(|it| (at, ExternalEvent::CancelReservation(it)));
        scenario.external_events.extend(cancels);
    }
}
