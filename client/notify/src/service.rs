//! All channels together, until the program is stopped; and a test message to one of them.

use std::sync::Arc;

use cohabit_client::Client;
use cohabit_client::types::Role;
use tokio::sync::{broadcast, watch};
use tokio::task::{JoinSet, spawn_blocking};

use crate::NotifyError;
use crate::channel::{Follower, FollowerParts};
use crate::clock::wall_clock;
use crate::config::{ChannelAddress, NotifyConfig};
use crate::form::Sender;
use crate::message::{Message, MessageUrgency};
use crate::problems::watch_head;
use crate::router::Router;
use crate::state_file::StateFile;

/// How many problems of the head may wait for a channel.
const MOST_PROBLEMS: usize = 16;

/// Follows the feed of this head until `stop` completes. Attempts that have begun are waited for.
///
/// # Errors
/// If the state file cannot be used, or a channel cannot be prepared.
pub async fn run(
    config: NotifyConfig,
    client: Client,
    stop: impl Future<Output = ()>,
) -> Result<(), NotifyError> {
    let path = config.state.clone();
    let state = Arc::new(blocking(move || StateFile::open(&path)).await?);
    let (stopping, stopped) = watch::channel(false);
    let (problems, _) = broadcast::channel(MOST_PROBLEMS);
    let mut tasks = JoinSet::new();
    for channel in &config.channels {
        let sender = Arc::new(Sender::new(channel).map_err(|why| cannot_prepare(&channel.name, &why))?);
        let parts = FollowerParts {
            source: client.clone(),
            channel: channel.clone(),
            router: Router::of(&config, &channel.name),
            sender,
            state: Arc::clone(&state),
            problems: problems.subscribe(),
            stop: stopped.clone(),
        };
        tasks.spawn(Follower::new(parts).run());
    }
    tasks.spawn(watch_head(client.clone(), problems, stopped.clone()));
    tasks.spawn(warn_of_role(client, stopped));
    stop.await;
    // Every task has a receiver, as long as one runs.
    let _ = stopping.send(true);
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a channel has ended");
        }
    }
    Ok(())
}

/// A token of a user sees the events of that user alone.
async fn warn_of_role(client: Client, mut stop: watch::Receiver<bool>) {
    let asked = tokio::select! {
        _ = stop.wait_for(|stop| *stop) => return,
        asked = client.own_token() => asked,
    };
    if let Ok(token) = asked
        && token.role != Role::Admin
    {
        tracing::warn!(
            user = token.name,
            "this token sees only what happens to jobs of its user: use one of an admin"
        );
    }
}

/// A message that shows whether a channel works.
#[derive(Debug, Clone)]
pub struct TestMessage {
    /// The channel.
    pub channel: String,
    /// For whom it is, where the address of the channel has the user's name in it.
    pub user: Option<String>,
}

/// Delivers a test message, with one attempt. Needs no head.
///
/// # Errors
/// If there is no such channel, or it does not take the message.
pub async fn send_test(config: &NotifyConfig, test: TestMessage) -> Result<(), NotifyError> {
    let channel = config.channel(&test.channel)?;
    let failed = |why: String| NotifyError::NotDelivered { channel: test.channel.clone(), why };
    let recipient = channel.recipient(test.user.as_deref()).ok_or_else(|| {
        failed(match &channel.address {
            ChannelAddress::OfUser(address) => format!("its address is {address}: name a user with --user"),
            ChannelAddress::Everybody | ChannelAddress::Fixed(_) => "it has no address".to_owned(),
        })
    })?;
    let sender = Sender::new(channel).map_err(|why| cannot_prepare(&channel.name, &why))?;
    let at = wall_clock();
    let key = format!("test-{}", at.as_micros());
    let text = "`cohabit notify --test` sent this: the channel works";
    let message = Message::plain(key, "test", MessageUrgency::Low, at, "Test message of Cohabit", text);
    let sent = spawn_blocking(move || sender.deliver(&message, &recipient)).await;
    match sent {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(failed(failure.why().to_owned())),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn cannot_prepare(channel: &str, why: &str) -> NotifyError {
    NotifyError::NotDelivered { channel: channel.to_owned(), why: why.to_owned() }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotifyError> + Send + 'static,
) -> Result<T, NotifyError> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
