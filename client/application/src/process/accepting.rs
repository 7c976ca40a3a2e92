//! Lets in the callers of the actor or of the tasks of this process.

use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use cohabit_application_core::SessionHello;
use cohabit_types::RankId;
use tokio::net::UnixListener;
use tokio::task::spawn_local;

use super::hold::Hold;
use super::member_process::MemberProcess;
use super::member_state::MemberState;
use super::peer::{AfterFrames, Peer, PeerConnection};
use crate::transport::{
    HelloCheck, HelloPurpose, LinkFailure, MemberHello, MemberStream, NetworkAdmission, SendBuffer,
    SessionEnd, SocketDirectory, SocketName, accept_handed_over, accept_members, carry,
};

/// The exit code of a process that got what no process of its program sends.
const BROKEN_PROTOCOL: i32 = 76;

/// The sockets at which a process is called.
pub(crate) struct CalleeSockets {
    /// From this node.
    callers: UnixListener,
    /// From other nodes: the process with the port passes connections on here.
    handed_over: UnixListener,
}

impl CalleeSockets {
    /// # Errors
    /// If they cannot be made.
    pub(crate) fn listen(directory: &SocketDirectory, own: RankId) -> io::Result<CalleeSockets> {
        let handed_over = directory.listen(SocketName::HandOver(own))?;
        Ok(CalleeSockets { callers: directory.listen(own)?, handed_over })
    }
}

/// Accepts callers for ever; `after` is called whenever they have sent something.
pub(crate) async fn accept_callers(
    process: Arc<MemberProcess>,
    sockets: CalleeSockets,
    after: impl Fn() + 'static,
) {
    let secret = process.access.credentials.secret;
    let check = HelloCheck { secret, own: process.access.member };
    let after: AfterFrames = Rc::new(after);
    let admission = Rc::new(NetworkAdmission::new(process.tls.clone(), check));
    let (over_network, after_network) = (Arc::clone(&process), Rc::clone(&after));
    let from_other_nodes = accept_handed_over(sockets.handed_over, check, move |stranger| {
        let (process, after) = (Arc::clone(&over_network), Rc::clone(&after_network));
        let admission = Rc::clone(&admission);
        spawn_local(async move {
            if let Some((stream, buffer, hello)) = admission.admit(stranger).await {
                serve(process, after, stream.into(), buffer, hello).await;
            }
        });
    });
    let from_this_node = accept_members(sockets.callers, check, move |stream, buffer, hello| {
        let (process, after) = (Arc::clone(&process), Rc::clone(&after));
        spawn_local(serve(process, after, stream.into(), buffer, hello));
    });
    tokio::join!(from_other_nodes, from_this_node);
}

async fn serve(
    process: Arc<MemberProcess>,
    after: AfterFrames,
    mut stream: MemberStream,
    buffer: BytesMut,
    MemberHello { purpose, hello, .. }: MemberHello,
) {
    let sending = Arc::new(SendBuffer::default());
    if purpose != HelloPurpose::Calls {
        tracing::warn!(from = %hello.from, "takes this process for the coordinator");
        return;
    }
    match process.with(|state| accept(state, &hello, &sending)) {
        Ok(true) => {}
        Ok(false) => return,
        Err(failure) => end_of_protocol(&failure.to_string()),
    }
    let (peer, link) = (Peer::Caller(hello.from), hello.link);
    let connection = PeerConnection { process: Arc::clone(&process), peer, link, after };
    let failure = carry(&mut stream, buffer, &sending, &connection).await;
    process.with(|state| state.disconnected(peer, link));
    if let LinkFailure::Protocol(text) = failure {
        end_of_protocol(&text);
    }
}

/// Whether the caller lives and its connection is the latest one.
fn accept(
    state: &mut MemberState<Hold>,
    hello: &SessionHello,
    sending: &Arc<SendBuffer>,
) -> Result<bool, LinkFailure> {
    if !state.member.admits(hello.from) {
        return Ok(false);
    }
    let session = state.callers.entry(hello.from).or_insert_with(|| SessionEnd::new(hello.to, hello.from));
    Ok(session.accept(hello, sending)?)
}

/// Ends the process: a session that is broken cannot be repaired.
pub(super) fn end_of_protocol(text: &str) -> ! {
    // Nothing can be done if standard error is closed.
    let _written = writeln!(io::stderr(), "cohabit: {text}; this process ends");
    std::process::exit(BROKEN_PROTOCOL)
}
