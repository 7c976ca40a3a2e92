//! Socket options of every TCP connection of a link, on both sides.
//!
//! `TCP_NODELAY`, because calls are small. Keepalive probes, because a machine that lost power sends nothing:
//! without them a head would keep the links of such clients for ever. Heartbeats notice a lost worker much
//! sooner.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A link that is idle for this long is probed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// The time between probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// A link ends when this many probes, or data sent for as long, were not acknowledged.
const KEEPALIVE_RETRIES: u32 = 6;

/// Sets the options of a new connection.
pub(crate) fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    socket.set_tcp_keepalive(&probes)?;
    // The kernel sends no probes while data is unacknowledged; this limits that wait.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_RETRIES))?;
    Ok(())
}
