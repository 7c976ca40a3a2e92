//! Lets in the callers of the actor of this process.

use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use cohabit_application_core::SessionHello;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::spawn_local;

use super::hold::Hold;
use super::member_process::MemberProcess;
use super::member_state::MemberState;
use super::peer::{AfterFrames, Peer, PeerConnection};
use crate::transport::{
    HelloCheck, HelloPurpose, LinkFailure, MemberHello, SendBuffer, SessionEnd, accept_members, carry,
};

/// The exit code of a process that got what no process of its program sends.
const BROKEN_PROTOCOL: i32 = 76;

/// Accepts callers for ever; `after` is called whenever they have sent something.
pub(crate) async fn accept_callers(
    process: Arc<MemberProcess>,
    listener: UnixListener,
    after: impl Fn() + 'static,
) {
    let secret = process.access.credentials.secret;
    let check = HelloCheck { secret, own: process.access.member };
    let after: AfterFrames = Rc::new(after);
    accept_members(listener, check, move |stream, buffer, hello| {
        let (process, after) = (Arc::clone(&process), Rc::clone(&after));
        spawn_local(serve(process, after, stream, buffer, hello));
    })
    .await;
}

async fn serve(
    process: Arc<MemberProcess>,
    after: AfterFrames,
    mut stream: UnixStream,
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
    let _written = writeln!(std::io::stderr(), "cohabit: {text}; this process ends");
    std::process::exit(BROKEN_PROTOCOL)
}
