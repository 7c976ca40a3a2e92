//! The sockets of NVIDIA's control program: local sockets that preserve message boundaries.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::path::Path;

use socket2::{Domain, SockAddr, Socket, Type};

/// Larger than any message.
const LONGEST: usize = 64 << 10;

/// One end of a connection.
#[derive(Debug)]
pub struct Packets(Socket);

/// A listening socket.
#[derive(Debug)]
pub struct Listener(Socket);

impl Listener {
    /// Listens on this path, replacing an earlier socket.
    ///
    /// # Errors
    /// When the path is too long for a socket, or cannot be written.
    pub fn bind(path: &Path) -> io::Result<Listener> {
        let address = SockAddr::unix(path)?;
        if path.exists() {
            std::fs::remove_file(path)?;
        }
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        socket.bind(&address)?;
        socket.listen(128)?;
        Ok(Listener(socket))
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// When the socket is closed.
    pub fn accept(&self) -> io::Result<Packets> {
        self.0.accept().map(|(socket, _)| Packets(socket))
    }
}

impl Packets {
    /// Connects to the socket at this path.
    ///
    /// # Errors
    /// When nothing listens there.
    pub fn connect(path: &Path) -> io::Result<Packets> {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        socket.connect(&SockAddr::unix(path)?)?;
        Ok(Packets(socket))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn send(&self, message: &str) -> io::Result<()> {
        // An empty message would look like the end.
        (&self.0).write_all(format!("={message}").as_bytes())
    }

    /// The next message; `None` when the other end is gone.
    #[must_use]
    pub fn receive(&self) -> Option<String> {
        let mut buffer = vec![0; LONGEST];
        let length = (&self.0).read(&mut buffer).ok()?;
        let message = std::str::from_utf8(buffer.get(..length)?).ok()?;
        message.strip_prefix('=').map(str::to_owned)
    }

    /// Ends the connection, and waits until the other end has noticed.
    pub fn finish(self) {
        // The other end may have ended it already.
        let _ = self.0.shutdown(Shutdown::Write);
        while self.receive().is_some() {}
    }
}
