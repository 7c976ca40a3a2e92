//! Frames arrive exactly once and in order, whatever connections do.

use super::kit::{effects, member};
use crate::{LinkNumber, Packet, Session, SessionError, SessionHello};

type End = Session<&'static str>;

fn pair() -> (End, End) {
    let (dialer, acceptor) = (member(2), member(3));
    (Session::new(dialer, acceptor), Session::new(acceptor, dialer))
}

const fn frame(number: u64, received: u64, frame: &'static str) -> Packet<&'static str> {
    Packet::Frame { number, received, frame }
}

/// Opens a new connection; what each end sends again.
fn connect(dialer: &mut End, acceptor: &mut End) -> (Vec<Packet<&'static str>>, Vec<Packet<&'static str>>) {
    let hello = dialer.dial();
    let mut from_acceptor = Vec::new();
    let answer = acceptor.accept(&hello, &mut from_acceptor).unwrap().unwrap();
    let from_dialer = effects(|it| dialer.opened(&answer, it).unwrap());
    (from_dialer, from_acceptor)
}

#[test]
fn frames_wait_for_a_connection_and_are_sent_until_acknowledged() {
    let (mut dialer, mut acceptor) = pair();
    assert_eq!(dialer.send("a"), None);
    let (sent, back) = connect(&mut dialer, &mut acceptor);
    assert_eq!((sent, back), (vec![frame(1, 0, "a")], vec![]));
    let link = dialer.open_link().unwrap();
    assert_eq!(acceptor.receive(link, frame(1, 0, "a")), Ok(Some("a")));
    assert_eq!(
        (dialer.unacknowledged(), acceptor.acknowledgement()),
        (1, Some(Packet::Received { received: 1 }))
    );
    assert_eq!(acceptor.acknowledgement(), None);
    assert_eq!(dialer.receive::<&str>(link, Packet::Received { received: 1 }), Ok(None));
    assert_eq!(dialer.unacknowledged(), 0);
}

#[test]
fn a_frame_carries_the_acknowledgement() {
    let (mut dialer, mut acceptor) = pair();
    connect(&mut dialer, &mut acceptor);
    let link = dialer.open_link().unwrap();
    let call = dialer.send("call").unwrap();
    assert_eq!(acceptor.receive(link, call), Ok(Some("call")));
    assert_eq!(acceptor.send("answer"), Some(frame(1, 1, "answer")));
    assert_eq!(acceptor.acknowledgement(), None);
}

#[test]
fn a_new_connection_brings_what_the_old_one_lost_and_nothing_twice() {
    let (mut dialer, mut acceptor) = pair();
    connect(&mut dialer, &mut acceptor);
    let first = dialer.open_link().unwrap();
    let [a, _lost, _lost_too] = ["a", "b", "c"].map(|it| dialer.send(it).unwrap());
    assert_eq!(acceptor.receive(first, a), Ok(Some("a")));
    dialer.closed(first);
    assert_eq!(dialer.send("d"), None);
    let (sent, _) = connect(&mut dialer, &mut acceptor);
    assert_eq!(sent, [frame(2, 0, "b"), frame(3, 0, "c"), frame(4, 0, "d")]);
    let second = dialer.open_link().unwrap();
    assert_eq!(acceptor.receive(first, frame(2, 0, "b")), Ok(None), "the old connection no longer counts");
    assert_eq!(acceptor.receive(second, frame(2, 0, "b")), Ok(Some("b")));
    assert_eq!(acceptor.receive(second, frame(2, 0, "b")), Ok(None));
}

#[test]
fn the_newest_connection_counts_in_whatever_order_hellos_arrive() {
    let (mut dialer, mut acceptor) = pair();
    let (older, newer) = (dialer.dial(), dialer.dial());
    let answer = acceptor.accept(&newer, &mut Vec::new()).unwrap().unwrap();
    assert_eq!(acceptor.accept(&older, &mut Vec::new()), Ok(None));
    dialer.opened(&SessionHello { link: older.link, ..answer }, &mut Vec::new()).unwrap();
    assert_eq!(dialer.open_link(), None);
    dialer.opened(&answer, &mut Vec::new()).unwrap();
    assert_eq!((dialer.open_link(), acceptor.open_link()), (Some(LinkNumber(2)), Some(LinkNumber(2))));
    dialer.closed(LinkNumber(1));
    assert_eq!(dialer.open_link(), Some(LinkNumber(2)));
}

#[test]
fn an_end_that_breaks_the_protocol_is_told() {
    let (mut dialer, mut acceptor) = pair();
    connect(&mut dialer, &mut acceptor);
    let link = dialer.open_link().unwrap();
    let peer = member(2);
    assert_eq!(
        acceptor.receive(link, frame(2, 0, "b")),
        Err(SessionError::Gap { peer, number: 2, received: 0 })
    );
    assert_eq!(
        acceptor.receive(link, frame(1, 5, "a")),
        Err(SessionError::NeverSent { peer, received: 5, sent: 0 })
    );
    dialer.send("a");
    dialer.receive::<&str>(link, Packet::Received { received: 1 }).unwrap();
    let hello = dialer.dial();
    let forgot = SessionHello { from: hello.to, to: hello.from, ..hello };
    assert_eq!(
        dialer.opened(&forgot, &mut Vec::new()),
        Err(SessionError::Forgotten { peer: member(3), received: 0, acknowledged: 1 })
    );
    let stranger = SessionHello { from: member(9), ..hello };
    let error = acceptor.accept(&stranger, &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "a connection from 9#1/0 to 3#1/0 for the session of 3#1/0 with 2#1/0");
}
