//! Socket options of TCP connections, on both sides.
//!
//! `TCP_NODELAY`, because calls are small. Keepalive probes, because a machine that lost power sends nothing:
//! without them a head would keep the links of such clients for ever. Heartbeats notice a lost worker much
//! sooner. Processes of an application have no heartbeats, so they probe more often.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// When an idle connection is probed, and when it ends.
struct Probes {
    /// A connection that is idle for this long is probed.
    idle: Duration,
    /// The time between probes.
    interval: Duration,
    /// A connection ends when this many probes, or data sent for as long, were not acknowledged.
    retries: u32,
}

/// Those of a link with a head.
const LINK: Probes = Probes { idle: Duration::from_secs(30), interval: Duration::from_secs(10), retries: 6 };

/// Those between the processes of an application.
const APPLICATION: Probes =
    Probes { idle: Duration::from_secs(1), interval: Duration::from_secs(1), retries: 3 };

/// Sets the options of a new link with a head.
pub(crate) fn set_up(stream: &TcpStream) -> io::Result<()> {
    LINK.set_up(stream)
}

/// Sets the options of a new connection between processes of an application.
pub(crate) fn set_up_application(stream: &TcpStream) -> io::Result<()> {
    APPLICATION.set_up(stream)
}

impl Probes {
    fn set_up(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        let probes =
            TcpKeepalive::new().with_time(self.idle).with_interval(self.interval).with_retries(self.retries);
        socket.set_tcp_keepalive(&probes)?;
        // The kernel sends no probes while data is unacknowledged; this limits that wait.
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(Some(self.idle + self.interval * self.retries))?;
        Ok(())
    }
}
