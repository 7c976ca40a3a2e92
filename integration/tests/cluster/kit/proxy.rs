//! A TCP relay on loopback between a worker and its head that can break.
//!
//! A connection breaks in two ways. It is *cut* when both ends see a reset, and *silent* when bytes are
//! dropped without notice, as behind a switch that lost power. Bytes in flight on a silent connection arrive
//! when it is restored, because TCP retransmits them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

/// How often a connection checks the state of the relay.
const LOOK: Duration = Duration::from_millis(10);

/// A relay, until it is dropped.
pub(crate) struct Proxy {
    address: String,
    wire: Arc<RwLock<Wire>>,
}

/// The state of the relay. Connections are numbered in the order in which they arrived.
#[derive(Default)]
struct Wire {
    state: State,
    /// Connections before this one are silent, whatever the state.
    silent_before: u64,
    /// Connections before this one were reset.
    reset_before: u64,
    next: u64,
    /// So many bytes have passed, in both directions.
    passed: AtomicU64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Whole,
    Silent,
    Cut,
    /// The proxy was dropped.
    Dropped,
}

/// What one connection may do now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionState {
    Open,
    Silent,
    Reset,
}

impl Proxy {
    /// A working relay to this address.
    pub(crate) fn to(head: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let wire = Arc::new(RwLock::new(Wire::default()));
        let shared = Arc::clone(&wire);
        thread::spawn(move || accept(&listener, &head, &shared));
        Proxy { address, wire }
    }

    /// The address at which a worker reaches the head through the relay.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// How many bytes have passed, in both directions.
    pub(crate) fn passed(&self) -> u64 {
        self.wire.read().unwrap().passed.load(Ordering::Relaxed)
    }

    /// Resets all connections, and each new one.
    pub(crate) fn cut(&self) {
        self.change(|wire| (wire.state, wire.reset_before) = (State::Cut, wire.next));
    }

    /// Drops all bytes silently.
    pub(crate) fn silence(&self) {
        self.change(|wire| wire.state = State::Silent);
    }

    /// Drops all bytes of existing connections silently; new connections pass.
    pub(crate) fn silence_present(&self) {
        self.change(|wire| wire.silent_before = wire.next);
    }

    /// Passes everything again, including bytes that were held back.
    pub(crate) fn mend(&self) {
        self.change(|wire| (wire.state, wire.silent_before) = (State::Whole, 0));
    }

    fn change(&self, change: impl FnOnce(&mut Wire)) {
        change(&mut self.wire.write().unwrap());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.change(|wire| (wire.state, wire.reset_before) = (State::Dropped, u64::MAX));
        // Wakes up who waits for a connection.
        let _ = TcpStream::connect(&self.address);
    }
}

impl Wire {
    fn passage(&self, connection: u64) -> ConnectionState {
        match self.state {
            _ if connection < self.reset_before => ConnectionState::Reset,
            State::Cut | State::Dropped => ConnectionState::Reset,
            State::Silent => ConnectionState::Silent,
            State::Whole if connection < self.silent_before => ConnectionState::Silent,
            State::Whole => ConnectionState::Open,
        }
    }
}

fn accept(listener: &TcpListener, head: &str, wire: &Arc<RwLock<Wire>>) {
    while let Ok((worker, _)) = listener.accept() {
        let number = {
            let mut wire = wire.write().unwrap();
            if wire.state == State::Dropped {
                return;
            }
            wire.next += 1;
            wire.next - 1
        };
        // The last of its copies to be closed resets the connection.
        SockRef::from(&worker).set_linger(Some(Duration::ZERO)).unwrap();
        let (head, wire) = (head.to_owned(), Arc::clone(wire));
        thread::spawn(move || relay(number, worker, &head, &wire));
    }
}

fn relay(number: u64, worker: TcpStream, head: &str, wire: &Arc<RwLock<Wire>>) {
    let Ok(head) = TcpStream::connect(head) else { return };
    SockRef::from(&head).set_linger(Some(Duration::ZERO)).unwrap();
    let back = (head.try_clone().unwrap(), worker.try_clone().unwrap());
    let shared = Arc::clone(wire);
    thread::spawn(move || pass(number, back.0, back.1, &shared));
    pass(number, worker, head, wire);
}

/// One direction. Its end also ends the other direction.
fn pass(number: u64, mut from: TcpStream, mut to: TcpStream, wire: &RwLock<Wire>) {
    from.set_read_timeout(Some(LOOK)).unwrap();
    let mut bytes = [0; 16 << 10];
    loop {
        // Held while bytes pass: once the wire has changed, not one does that should not.
        let now = wire.read().unwrap();
        match now.passage(number) {
            ConnectionState::Reset => return,
            ConnectionState::Silent => {
                drop(now);
                thread::sleep(LOOK);
            }
            ConnectionState::Open => match from.read(&mut bytes) {
                Ok(length) if length > 0 && to.write_all(&bytes[..length]).is_ok() => {
                    now.passed.fetch_add(length as u64, Ordering::Relaxed);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Ok(_) | Err(_) => break,
            },
        }
    }
    for side in [from, to] {
        // One of them is closed already.
        let _ = side.shutdown(Shutdown::Both);
    }
}
