//! Samples of reservations.

use cohabit_scheduler_core::Event;
use cohabit_types::{
    ClientRequestId, Principal, Request, ReservationAccess, ReservationRequest, Role, Span, Time,
};

/// Nodes are reserved for maintenance, and for users and projects, and a reservation is cancelled.
pub(super) fn events() -> Vec<Event> {
    let by = || Principal::new("root", Role::Admin);
    let maintenance = ReservationRequest {
        nodes: vec!["node-a".into(), "node-b".into()],
        from: Some(Time::from_micros(9_000_000)),
        length: Some(Span::from_secs(14_400)),
        reason: Some("new disks".into()),
        ..ReservationRequest::default()
    };
    let admits =
        ReservationAccess { users: ["ada".to_owned()].into(), projects: ["vision".to_owned()].into() };
    let for_users = ReservationRequest {
        nodes: vec!["node-c".into()],
        admits,
        stop_jobs: true,
        ..ReservationRequest::default()
    };
    vec![
        Event::Client(ClientRequestId(11), by(), Request::Reserve(Box::new(maintenance))),
        Event::Client(ClientRequestId(12), by(), Request::Reserve(Box::new(for_users))),
        Event::Client(ClientRequestId(13), by(), Request::CancelReservation(2)),
    ]
}
