//! How every TCP connection of a link is set up, on both sides.
//!
//! No delay, because calls are small. Probes, because a machine that lost its power says nothing: without
//! them a head would keep the links of such clients for ever. Heartbeats of workers notice much sooner.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A link that is silent for this long is probed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// From one probe to the next.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// A link ends when this many probes, or what was sent for as long, were not taken.
const KEEPALIVE_RETRIES: u32 = 6;

/// Sets up a fresh connection.
pub(crate) fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    socket.set_tcp_keepalive(&probes)?;
    // Probes rest while something is under way; this ends the wait for its acknowledgement.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_RETRIES))?;
    Ok(())
}
