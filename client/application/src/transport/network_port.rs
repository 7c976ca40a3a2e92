//! The port of a node: all connections from other nodes come here.
//!
//! One process of the node listens. It reads whom a connection is for, and passes it to that process.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use cohabit_net::{RateLimitedLog, RejectionClass};
use cohabit_types::{ApplicationAccess, ApplicationSecret, RankId};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::greeting::{GREETING_BYTES, GreetingKind, NetworkGreeting};
use super::hand_over::hand_over;
use super::hello::HandOverHello;
use super::link_failure::LinkFailure;
use super::network_admission::in_time;
use super::socket::SocketDirectory;
use super::stranger::{ACCEPT_PAUSE, Stranger, StrangerLimit, StrangerPermit};

/// Connections that the system keeps until they are accepted: one of each process of an application.
const BACKLOG: i32 = 1024;

/// The port of this node, in the process that listens there.
#[derive(Debug)]
pub(crate) struct NetworkPort {
    listener: TcpListener,
    own: RankId,
    secret: ApplicationSecret,
    directory: SocketDirectory,
    log: RateLimitedLog,
}

impl NetworkPort {
    /// Listens at the port that this process was given, on all addresses. None if it was given none.
    ///
    /// # Errors
    /// If it cannot listen.
    pub(crate) fn open(access: &ApplicationAccess) -> io::Result<Option<NetworkPort>> {
        let Some(at) = &access.port else { return Ok(None) };
        let cannot = |error: io::Error| {
            let text = format!("cannot listen at port {} for processes of other nodes: {error}", at.port);
            io::Error::new(error.kind(), text)
        };
        let listener = listen(at.port).map_err(cannot)?;
        Ok(Some(NetworkPort {
            listener,
            own: access.member,
            secret: access.credentials.secret,
            directory: SocketDirectory::open(&access.directory)?,
            log: RateLimitedLog::default(),
        }))
    }

    /// Where it listens.
    #[cfg(test)]
    pub(crate) fn number(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    /// Accepts connections for ever. Those for this process go to `members`, those for objects to `objects`,
    /// and those for other processes of this node to them.
    pub(crate) async fn serve(
        self,
        members: impl Fn(Stranger) + 'static,
        objects: impl Fn(Stranger) + 'static,
    ) {
        let (port, handlers) = (Rc::new(self), Rc::new((members, objects)));
        let strangers = StrangerLimit::new();
        loop {
            let permit = strangers.room().await;
            let (stream, address) = match port.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    port.log.log_accept_error(&error);
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (port, handlers) = (Rc::clone(&port), Rc::clone(&handlers));
            spawn_local(async move {
                let (members, objects) = &*handlers;
                if let Err(failure) = in_time(port.receive(stream, permit, members, objects)).await {
                    port.log.log_rejection(RejectionClass::Noise, address, &failure);
                }
            });
        }
    }

    /// Reads whom the connection is for, and passes it on.
    async fn receive(
        &self,
        mut stream: TcpStream,
        permit: StrangerPermit,
        members: impl Fn(Stranger),
        objects: impl Fn(Stranger),
    ) -> Result<(), LinkFailure> {
        let mut bytes = [0; GREETING_BYTES];
        stream.read_exact(&mut bytes).await?;
        let greeting = NetworkGreeting::from_bytes(&bytes);
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let NetworkGreeting { to, kind } = greeting.map_err(invalid)?;
        match kind {
            GreetingKind::Objects => objects(Stranger::new(stream.into_std()?, permit)?),
            GreetingKind::Session if to == self.own => members(Stranger::new(stream.into_std()?, permit)?),
            GreetingKind::Session => {
                let hello = HandOverHello { secret: self.secret, to };
                hand_over(&self.directory, hello, &stream).await?;
            }
        }
        Ok(())
    }
}

/// Listens on all addresses, of both versions where the system has both.
fn listen(port: u16) -> io::Result<TcpListener> {
    let v6 = bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    let socket = v6.or_else(|_| bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))))?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Connections of an earlier attempt at this port may not be quite over.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
