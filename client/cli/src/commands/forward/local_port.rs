//! The port of this machine: accepts connections and carries them until the job has ended.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use cohabit_client::types::{
    ForwardId, ForwardPurpose, ForwardRequest, JobPhase, JobRecord, MOST_FORWARDS, RefusalCode,
};
use cohabit_client::{Client, Error, JobHandle};
use cohabit_console::{CommandError, output};
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::JobPort;
use crate::commands::terminal::random_number;

/// How long what its server has sent may take to arrive once the job has ended.
const REST: Duration = Duration::from_secs(10);
/// How long the head may take to hear that connections are closed: their worker would notice by itself.
const FAREWELL: Duration = Duration::from_secs(3);
/// The pause when no connection can be accepted, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(200);

/// A port of this machine's loopback address. Whoever uses this machine may connect to it.
pub(in crate::commands) struct LocalPort {
    listener: TcpListener,
    port: u16,
    /// The connections that are open.
    open: RefCell<BTreeSet<ForwardId>>,
    /// The error that was printed last: a browser tries again and again.
    said: RefCell<Option<String>>,
    /// Whether the job has ended.
    job_end: watch::Sender<bool>,
}

impl LocalPort {
    /// Listens on this port, or on a free one if it is 0.
    pub(in crate::commands) async fn bind(port: u16) -> io::Result<LocalPort> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        let (open, said, job_end) = (RefCell::default(), RefCell::default(), watch::Sender::new(false));
        Ok(LocalPort { listener, port, open, said, job_end })
    }

    pub(in crate::commands) const fn port(&self) -> u16 {
        self.port
    }

    /// Looks whether the job listens there. It may do so later, unless another program does.
    pub(super) async fn check(&self, client: &Client, to: JobPort, attempt: u32) -> Result<(), CommandError> {
        let request = request(to, attempt, ForwardPurpose::Check);
        match client.open_forward(request).await {
            Err(Error::Refused(refusal)) if refusal.code == RefusalCode::WrongState => {
                let message =
                    format!("note: {}. Connections are refused until the job does", refusal.message);
                self.say(message);
                Ok(())
            }
            checked => Ok(checked?),
        }
    }

    /// Carries connections until the job has ended, and then what is left of them.
    pub(in crate::commands) async fn carry(
        &self,
        client: &Client,
        job: &JobHandle,
        to: JobPort,
    ) -> Result<JobRecord, CommandError> {
        let (mut latest, mut records) = (job.record().await?, job.watch());
        let mut connections = FuturesUnordered::new();
        while latest.state.phase() != JobPhase::Ended {
            tokio::select! {
                record = records.try_next() => match record? {
                    Some(record) => latest = record,
                    None => latest = job.record().await?,
                },
                Some(()) = connections.next() => {}
                accepted = self.listener.accept(), if connections.len() < MOST_FORWARDS => match accepted {
                    Ok((stream, _)) => {
                        let request = request(to, latest.attempt, ForwardPurpose::Connect);
                        connections.push(self.serve(client, stream, request));
                    }
                    Err(error) => {
                        self.say(format!("a connection to 127.0.0.1:{} failed: {error}", self.port));
                        sleep(PAUSE).await;
                    }
                },
            }
        }
        // Its server has ended: each comes to an end by itself.
        self.job_end.send_replace(true);
        let _ = timeout(REST, connections.count()).await;
        Ok(latest)
    }

    /// Closes the connections that are open.
    pub(in crate::commands) async fn close(&self, client: &Client) {
        let open: Vec<ForwardId> = self.open.borrow().iter().copied().collect();
        let _ = timeout(FAREWELL, join_all(open.into_iter().map(|id| client.close_forward(id)))).await;
    }

    async fn serve(&self, client: &Client, stream: TcpStream, request: ForwardRequest) {
        self.open.borrow_mut().insert(request.id);
        match carry(client, stream, request, self.job_end.subscribe()).await {
            Ok(()) => _ = self.said.take(),
            Err(error) => self.say(format!("a connection to port {} failed: {error}", request.port)),
        }
        // Its worker closes it by itself, but later.
        let _ = client.close_forward(request.id).await;
        self.open.borrow_mut().remove(&request.id);
    }

    /// Prints a message unless it was the last one.
    fn say(&self, message: String) {
        if self.said.borrow().as_ref() != Some(&message) {
            output::print_message(&message);
            self.said.replace(Some(message));
        }
    }
}

/// Opens the connection on the other side, and carries it to its end.
///
/// # Errors
/// When the other side cannot be connected to, or was lost. The program on this machine sees a reset then.
async fn carry(
    client: &Client,
    mut stream: TcpStream,
    request: ForwardRequest,
    mut job_end: watch::Receiver<bool>,
) -> Result<(), Error> {
    // Keys leave at once. A connection that does not allow it is as good.
    let _ = stream.set_nodelay(true);
    let ended = async {
        if job_end.wait_for(|has_ended| *has_ended).await.is_err() {
            pending().await
        }
    };
    let carried = match client.connect_to_port(request).await {
        Ok(connection) => connection.carry(&mut stream, ended).await,
        Err(error) => Err(error),
    };
    // An end in order would look like the end of what the server had to say.
    carried.inspect_err(|_| _ = stream.set_zero_linger())
}

fn request(to: JobPort, attempt: u32, purpose: ForwardPurpose) -> ForwardRequest {
    let id = ForwardId { rank: to.job.attempt(attempt).rank(to.rank), number: random_number() };
    ForwardRequest { id, port: to.port, purpose }
}
