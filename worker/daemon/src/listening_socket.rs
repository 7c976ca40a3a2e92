//! Which process listens on a port of this host's loopback address: for connections to the ports of jobs,
//! which may reach no other program.
//!
//! A job's processes are the descendants of the executors of its ranks, which keep orphans as their
//! subreapers. All functions read `/proc`, and so block.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use cohabit_host::process::descendants_of;
use cohabit_host::rank_directory::{RankDirectory, ranks_in};
use cohabit_types::{AttemptId, RankId, Refusal, RefusalCode};
use nix::unistd::Pid;
use procfs::net::{TcpNetEntry, TcpState, tcp, tcp6};
use procfs::process::Process;

use crate::state_directory::StateDirectory;

/// The sockets that take connections to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListeningSockets {
    /// Where to connect to.
    pub(crate) address: SocketAddr,
    /// Several, if they share the port.
    sockets: BTreeSet<ListeningSocket>,
}

/// A socket that listens. No later one has its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ListeningSocket {
    inode: u64,
    uid: u32,
}

impl ListeningSockets {
    /// Those that listen on this port now, if they are all of processes of this rank's job.
    ///
    /// # Errors
    /// When the rank does not run, nobody listens, or another process does.
    pub(crate) fn find(state: &StateDirectory, rank: RankId, port: u16) -> Result<ListeningSockets, Refusal> {
        let job = rank.attempt.job;
        if !is_running(state, rank) {
            let message = format!("rank {} of job {job} does not run on this worker (any more)", rank.rank);
            return Err(Refusal::new(RefusalCode::WrongState, message));
        }
        let found = listening_on(port).map_err(|error| unreadable(&error))?.ok_or_else(|| {
            let message = format!("nobody listens on port {port} of 127.0.0.1 on the node of job {job}");
            Refusal::new(RefusalCode::WrongState, message)
        })?;
        let owned = sockets_of(state, rank.attempt);
        // Its executor may run a rank of another job by now.
        if is_running(state, rank) && found.sockets.is_subset(&owned) {
            return Ok(found);
        }
        let message = format!(
            "the process that listens on port {port} of the node of job {job} does not belong to job {job}: only \
             ports of the job's own processes can be connected to"
        );
        Err(Refusal::new(RefusalCode::NotAllowed, message))
    }

    /// Whether exactly these listen there still.
    pub(crate) fn listen_still(&self) -> bool {
        listening_on(self.address.port()).is_ok_and(|now| now.as_ref() == Some(self))
    }
}

fn is_running(state: &StateDirectory, rank: RankId) -> bool {
    let directory = RankDirectory::for_rank(&state.ranks(), rank);
    directory.start().ok().flatten().is_some() && !directory.is_over()
}

/// The sockets that would take a connection to this port of the loopback address: the kernel prefers one that
/// is bound to the very address, and IPv4 to IPv6.
fn listening_on(port: u16) -> Result<Option<ListeningSockets>, procfs::ProcError> {
    let mut entries = tcp()?;
    // A host without IPv6 has no such file.
    entries.extend(tcp6().unwrap_or_default());
    let listening: Vec<TcpNetEntry> = entries
        .into_iter()
        .filter(|entry| entry.state == TcpState::Listen && entry.local_address.port() == port)
        .collect();
    let (v4, v6) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let (any_v4, any_v6) = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let order = [(v4, v4), (any_v4, v4), (any_v6, v4), (v6, v6)];
    Ok(order.into_iter().find_map(|(bound, reached)| {
        let is_bound = |entry: &&TcpNetEntry| entry.local_address.ip().to_canonical() == bound;
        let sockets: BTreeSet<ListeningSocket> = listening.iter().filter(is_bound).map(of_entry).collect();
        let address = SocketAddr::new(reached, port);
        (!sockets.is_empty()).then_some(ListeningSockets { address, sockets })
    }))
}

const fn of_entry(entry: &TcpNetEntry) -> ListeningSocket {
    ListeningSocket { inode: entry.inode, uid: entry.uid }
}

/// The sockets that processes of this attempt hold and have the user id of, on this worker. One that a
/// program of another user has passed to them is not theirs.
fn sockets_of(state: &StateDirectory, attempt: AttemptId) -> BTreeSet<ListeningSocket> {
    let ranks = ranks_in(&state.ranks()).into_iter().filter(|rank| rank.attempt == attempt);
    let directories = ranks.map(|rank| RankDirectory::for_rank(&state.ranks(), rank));
    let running = directories.filter(|directory| !directory.is_over());
    let executors = running.filter_map(|directory| directory.identity().ok().flatten());
    executors
        .filter(|executor| executor.root().is_alive())
        .flat_map(|executor| descendants_of(Pid::from_raw(executor.root().pid())))
        .flat_map(|process| sockets_of_process(process.pid))
        .collect()
}

/// Nothing of a process that has ended, or that this worker may not look into.
fn sockets_of_process(pid: Pid) -> Vec<ListeningSocket> {
    let Some(uid) = Process::new(pid.as_raw()).and_then(|process| process.status()).ok().map(|it| it.euid)
    else {
        return Vec::new();
    };
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    let inodes = targets.filter_map(|target| {
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
    });
    inodes.map(|inode| ListeningSocket { inode, uid }).collect()
}

fn unreadable(error: &procfs::ProcError) -> Refusal {
    let message = format!("the worker cannot read who listens on its ports: {error}");
    Refusal::new(RefusalCode::Internal, message)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn bound(address: &str) -> (TcpListener, u16) {
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[test]
    fn the_sockets_of_a_port_are_those_that_this_process_holds_while_they_listen() {
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let (listener, port) = bound(address);
            let found = listening_on(port).unwrap().unwrap();
            assert_eq!(found.address, SocketAddr::from(([127, 0, 0, 1], port)));
            let own: BTreeSet<_> = sockets_of_process(Pid::this()).into_iter().collect();
            assert!(found.sockets.is_subset(&own) && found.listen_still(), "{found:?} of {own:?}");
            drop(listener);
            assert!(!found.listen_still());
            assert_eq!(listening_on(port).unwrap(), None);
        }
    }

    #[test]
    fn a_connection_is_no_listener_and_another_address_is_not_the_loopback() {
        let (listener, port) = bound("127.0.0.2:0");
        assert_eq!(listening_on(port).unwrap(), None);
        let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(listening_on(connected.local_addr().unwrap().port()).unwrap(), None);
    }

    #[test]
    fn another_socket_on_the_same_port_is_another_listener() {
        let (listener, port) = bound("127.0.0.1:0");
        let found = listening_on(port).unwrap().unwrap();
        drop(listener);
        let _again = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(!found.listen_still());
    }

    #[test]
    fn a_socket_of_another_user_is_not_that_of_a_process() {
        let (_listener, port) = bound("127.0.0.1:0");
        let mut found = listening_on(port).unwrap().unwrap();
        let own: BTreeSet<_> = sockets_of_process(Pid::this()).into_iter().collect();
        assert!(found.sockets.is_subset(&own));
        found.sockets = found.sockets.iter().map(|it| ListeningSocket { uid: it.uid + 1, ..*it }).collect();
        assert!(!found.sockets.is_subset(&own));
    }
}
