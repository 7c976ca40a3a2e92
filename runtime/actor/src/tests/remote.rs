//! An actor on another node, over a link that carries nothing but bytes. This is all that a real link has to
//! do.

use super::kit::{LONG, never};
use crate::address::{Closed, Deliver, SendPermit, TryTellError};
use crate::{Actor, ActorFailure, ActorSystem, Address, AskError, Call, Context, ReplyTo, mailbox};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What travels.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    Add(u32),
    Total,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Response {
    Added,
    Total(u32),
}

/// The actor on the far node has messages of its own, which cannot travel.
struct Ledger(u32);

enum Entry {
    Add(u32),
    Total(ReplyTo<u32>),
}

impl From<Call<Request, Response>> for Entry {
    fn from(call: Call<Request, Response>) -> Self {
        match call.request {
            Request::Add(amount) => {
                call.reply_to.send(Response::Added);
                Self::Add(amount)
            }
            Request::Total => Self::Total(call.reply_to.map(Response::Total)),
        }
    }
}

impl Actor for Ledger {
    type Message = Entry;

    async fn handle(&mut self, entry: Entry, _: &mut Context<Self>) -> Result<(), ActorFailure> {
        match entry {
            Entry::Add(13) => return Err(ActorFailure::from_message("an unlucky amount")),
            Entry::Add(amount) => self.0 += amount,
            Entry::Total(reply_to) => reply_to.send(self.0),
        }
        Ok(())
    }
}

type Remote = Address<Call<Request, Response>>;
type Bytes = Vec<u8>;
type Waiting = Arc<Mutex<BTreeMap<u64, ReplyTo<Response>>>>;

/// The near end: a bounded outbox of bytes, and the replies that wait.
struct Link {
    outbox: mpsc::Sender<Bytes>,
    next_id: AtomicU64,
    waiting: Waiting,
}

impl Link {
    fn slot<'a>(&'a self, permit: mpsc::Permit<'a, Bytes>) -> SendPermit<'a, Call<Request, Response>> {
        Box::new(move |call| {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            self.waiting.lock().unwrap().insert(id, call.reply_to);
            permit.send(serde_json::to_vec(&(id, call.request)).unwrap());
        })
    }
}

impl Deliver<Call<Request, Response>> for Link {
    fn reserve(&self) -> BoxFuture<'_, Result<SendPermit<'_, Call<Request, Response>>, Closed>> {
        Box::pin(
            async move { self.outbox.reserve().await.map(|permit| self.slot(permit)).map_err(|_| Closed) },
        )
    }

    fn try_reserve(&self) -> Result<SendPermit<'_, Call<Request, Response>>, TryTellError<()>> {
        match self.outbox.try_reserve() {
            Ok(permit) => Ok(self.slot(permit)),
            Err(mpsc::error::TrySendError::Full(())) => Err(TryTellError::Full(())),
            Err(mpsc::error::TrySendError::Closed(())) => Err(TryTellError::Closed(())),
        }
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.outbox.closed())
    }

    fn is_closed(&self) -> bool {
        self.outbox.is_closed()
    }
}

/// The far end: asks the actor for each request, and sends its response back if there is one.
async fn serve(mut requests: mpsc::Receiver<Bytes>, responses: mpsc::Sender<Bytes>, actor: Remote) {
    while let Some(bytes) = requests.recv().await {
        let (id, request): (u64, Request) = serde_json::from_slice(&bytes).unwrap();
        let response = actor.ask(Call::of(request)).await.ok();
        responses.send(serde_json::to_vec(&(id, response)).unwrap()).await.unwrap();
    }
}

/// The near end's reader. When the link breaks, nobody waits for it any longer.
async fn resolve(mut responses: mpsc::Receiver<Bytes>, waiting: Waiting) {
    while let Some(bytes) = responses.recv().await {
        let (id, response): (u64, Option<Response>) = serde_json::from_slice(&bytes).unwrap();
        let reply_to = waiting.lock().unwrap().remove(&id);
        if let (Some(reply_to), Some(response)) = (reply_to, response) {
            reply_to.send(response);
        }
    }
    waiting.lock().unwrap().clear();
}

/// A link to the actor, and the task of its far end: abort it to break the link.
fn link(actor: Remote) -> (Remote, JoinHandle<()>) {
    let (outbox, requests) = mpsc::channel(1);
    let (responses, inbox) = mpsc::channel(1);
    let waiting = Waiting::default();
    let far_end = tokio::spawn(serve(requests, responses, actor));
    tokio::spawn(resolve(inbox, Arc::clone(&waiting)));
    (Address::remote(Link { outbox, next_id: AtomicU64::new(0), waiting }), far_end)
}

#[tokio::test(start_paused = true)]
async fn an_actor_on_another_node_is_told_and_asked_as_one_here() {
    let system = ActorSystem::new();
    let ledger = system.spawn_once(never("ledger"), Ledger(0));
    let here = ledger.mapped(Entry::from);
    let (there, _far_end) = link(here.clone());
    for address in [here, there] {
        assert_eq!(address.ask(Call::of(Request::Add(20))).await, Ok(Response::Added));
        address.ask_within(LONG, Call::of(Request::Add(1))).await.unwrap();
    }
    assert_eq!(ledger.ask(Entry::Total).await, Ok(42));
}

#[tokio::test(start_paused = true)]
async fn a_remote_actor_that_fails_gives_no_reply() {
    let system = ActorSystem::new();
    let ledger = system.spawn_once(never("ledger"), Ledger(0));
    let (there, _far_end) = link(ledger.mapped(Entry::from));
    there.ask(Call::of(Request::Add(13))).await.unwrap();
    assert_eq!(there.ask(Call::of(Request::Total)).await, Err(AskError::NoReply));
}

#[tokio::test(start_paused = true)]
async fn a_full_outbox_pushes_back_and_a_broken_link_closes_the_address() {
    let (silent, mut mailbox) = mailbox::<Call<Request, Response>>(8);
    let (there, far_end) = link(silent);
    let ask = || Box::pin(there.ask(Call::of(Request::Total)));
    let (mut carried, mut in_outbox, mut outside) = (ask(), ask(), ask());
    assert_eq!(carried.as_mut().now_or_never(), None);
    let call = mailbox.receive().await.unwrap();
    assert_eq!(in_outbox.as_mut().now_or_never(), None);
    assert_eq!(outside.as_mut().now_or_never(), None);
    assert!(matches!(there.try_tell(call), Err(TryTellError::Full(_))));
    far_end.abort();
    there.closed().await;
    assert_eq!(carried.await, Err(AskError::NoReply));
    assert_eq!(in_outbox.await, Err(AskError::NoReply));
    assert_eq!(outside.await, Err(AskError::Closed(Closed)));
}
