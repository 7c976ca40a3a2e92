//! Lets in the processes of the application on other nodes, and nobody else.

use std::future::Future;
use std::io;

use bytes::BytesMut;
use cohabit_net::{ApplicationStream, ApplicationTls, RateLimitedLog, RejectionClass};
use tokio::time::timeout;

use super::hello::ConnectionHello;
use super::link_failure::LinkFailure;
use super::listener::HelloCheck;
use super::stranger::{HELLO_TIMEOUT, Stranger};

/// Asks those that come over the network for the key of the application, and what they want.
#[derive(Debug)]
pub(crate) struct NetworkAdmission {
    tls: ApplicationTls,
    check: HelloCheck,
    log: RateLimitedLog,
}

impl NetworkAdmission {
    pub(crate) fn new(tls: ApplicationTls, check: HelloCheck) -> NetworkAdmission {
        NetworkAdmission { tls, check, log: RateLimitedLog::default() }
    }

    /// Does the handshake, and reads what the other end says, with what comes after it. None if it is no
    /// process of the application, or not in time; that is logged.
    pub(crate) async fn admit<H: ConnectionHello>(
        &self,
        stranger: Stranger,
    ) -> Option<(ApplicationStream, BytesMut, H)> {
        let address = stranger.address();
        match in_time(self.shake_hands(stranger)).await {
            Ok(admitted) => Some(admitted),
            Err(failure) => {
                self.log.log_rejection(RejectionClass::Refusal, address, &failure);
                None
            }
        }
    }

    async fn shake_hands<H: ConnectionHello>(
        &self,
        stranger: Stranger,
    ) -> Result<(ApplicationStream, BytesMut, H), LinkFailure> {
        let (stream, _permit) = stranger.into_parts()?;
        let mut stream = self.tls.accept(stream).await?;
        let mut buffer = BytesMut::new();
        let hello = self.check.read_hello(&mut stream, &mut buffer).await?;
        Ok((stream, buffer, hello))
    }
}

/// Limits a step of a connection that has not said whose it is.
pub(super) async fn in_time<T>(step: impl Future<Output = Result<T, LinkFailure>>) -> Result<T, LinkFailure> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "it did not say in time whose it is");
    timeout(HELLO_TIMEOUT, step).await.map_err(|_late| late())?
}
