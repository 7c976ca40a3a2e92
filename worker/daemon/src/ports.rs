//! Ports for the rendezvous of the ranks of an attempt: a block that belongs to this worker alone.
//!
//! All workers of a host, of whatever cluster, share the port range, and each takes a block. The first port
//! of a block is its lock, bound as long as the daemon lives. The other ports are for ranks, unless another
//! program uses them; that is checked when the block is claimed, and again just before a rank starts that
//! will listen on one. The daemon itself never listens on any of them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpSocket;

/// Above torchrun's default port, which people use by hand, and below the ephemeral ports.
const FIRST: u16 = 29_504;
const BLOCK: u16 = 64;
const BLOCKS: u16 = 48;

/// The ports of this worker.
#[derive(Debug)]
pub(crate) struct PortBlock {
    /// The ports that no other program used.
    pub(crate) free: Vec<u16>,
    _lock: TcpSocket,
}

impl PortBlock {
    /// Claims the first block that is not taken, starting at one chosen by `seed`; `None` if all are taken.
    pub(crate) fn claim(seed: u128) -> Option<PortBlock> {
        let start = (seed % u128::from(BLOCKS)) as u16;
        let blocks = (0..BLOCKS).map(|offset| FIRST + (start + offset) % BLOCKS * BLOCK);
        let mut locked = blocks.filter_map(|first| Some((first, lock(first)?)));
        let (first, lock) = locked.next()?;
        let free = (first + 1..first + BLOCK).filter(|port| is_free(*port)).collect();
        Some(PortBlock { free, _lock: lock })
    }
}

/// Whether a server could listen on this port now, at all addresses of this host.
pub(crate) fn is_free(port: u16) -> bool {
    bound(port).is_ok()
}

/// Binds the port exclusively while the socket exists.
fn lock(port: u16) -> Option<TcpSocket> {
    let socket = bound(port).ok()?;
    socket.set_reuseaddr(false).ok()?;
    Some(socket)
}

/// Fails if a server listens there; connections of a server that has ended do not matter.
fn bound(port: u16) -> io::Result<TcpSocket> {
    let bind = |socket: TcpSocket, address: SocketAddr| {
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(socket)
    };
    match TcpSocket::new_v6() {
        Ok(socket) => bind(socket, (Ipv6Addr::UNSPECIFIED, port).into()),
        // A host without IPv6.
        Err(_) => bind(TcpSocket::new_v4()?, (Ipv4Addr::UNSPECIFIED, port).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn two_workers_never_share_a_port() {
        let blocks = [PortBlock::claim(7).unwrap(), PortBlock::claim(7).unwrap()];
        assert!(blocks.iter().all(|block| !block.free.is_empty()));
        assert!(!blocks[0].free.iter().any(|port| blocks[1].free.contains(port)));
        let range = FIRST..FIRST + BLOCK * BLOCKS;
        assert!(blocks.iter().flat_map(|block| &block.free).all(|port| range.contains(port)));
    }

    #[test]
    fn a_block_is_free_again_when_its_worker_has_ended() {
        let first = |block: &PortBlock| block.free.first().map(|port| (port - FIRST) / BLOCK);
        let block = PortBlock::claim(31).unwrap();
        let was = first(&block);
        drop(block);
        assert_eq!(first(&PortBlock::claim(31).unwrap()), was);
    }

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!is_free(port));
        drop(listener);
        assert!(is_free(port));
    }

    #[test]
    fn a_rank_can_listen_on_a_free_port_while_its_block_is_held() {
        let block = PortBlock::claim(3).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", block.free[0])).unwrap();
        assert!(!is_free(block.free[0]) && is_free(block.free[1]));
        drop(listener);
    }
}
