//! A feed of given entries, and a receiver that answers as a test wants.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router as Pages;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use cohabit_client::Error;
use cohabit_client::types::{Feed, FeedCursor, FeedEntry, FeedGap};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio::task::{AbortHandle, JoinHandle};

use crate::NotifyError;
use crate::channel::{Follower, FollowerParts};
use crate::config::{ChannelAddress, ChannelConfig, ChannelKind, NotifyConfig, Route};
use crate::feed_source::FeedSource;
use crate::form::Sender;
use crate::message::samples::{at, ended, entry};
use crate::router::Router;
use crate::state_file::StateFile;
use cohabit_settings::FileSecret;

/// Entries in one answer of the feed.
const PAGE: usize = 3;

/// A feed that a test fills.
#[derive(Clone)]
pub(super) struct TestFeed {
    entries: watch::Sender<Vec<FeedEntry>>,
    pub(super) gap: Arc<Mutex<FeedGap>>,
}

impl TestFeed {
    pub(super) fn new() -> TestFeed {
        TestFeed { entries: watch::Sender::new(Vec::new()), gap: Arc::new(Mutex::new(FeedGap::None)) }
    }

    /// Adds so many failures of jobs of ada.
    pub(super) fn add(&self, count: u64) {
        self.entries.send_modify(|entries| {
            let first = entries.len() as u64 + 1;
            entries.extend((first..first + count).map(|number| entry(number, ended(number))));
        });
    }

    pub(super) fn add_entry(&self, entry: FeedEntry) {
        self.entries.send_modify(|entries| entries.push(entry));
    }
}

impl FeedSource for TestFeed {
    async fn feed(&self, after: Option<FeedCursor>) -> Result<Feed, Error> {
        let mut entries = self.entries.subscribe();
        let end = |entries: &[FeedEntry]| {
            let last = entries.last();
            last.map_or(FeedCursor::START, |it| FeedCursor { number: it.number, at: it.event.at })
        };
        let Some(after) = after else {
            let next = end(&entries.borrow());
            return Ok(Feed { gap: FeedGap::None, entries: Vec::new(), next, more: false });
        };
        let later = |entries: &Vec<FeedEntry>| entries.iter().any(|entry| entry.number > after.number);
        let entries = entries.wait_for(later).await.expect("the test holds the feed");
        let page: Vec<FeedEntry> =
            entries.iter().filter(|entry| entry.number > after.number).take(PAGE).cloned().collect();
        let (next, more) = (end(&page), page.last() != entries.last());
        let gap = std::mem::replace(&mut *self.gap.lock().unwrap(), FeedGap::None);
        Ok(Feed { gap, entries: page, next, more })
    }
}

/// How the receiver answers a request.
#[derive(Debug, Clone)]
pub(super) enum ReceiverAnswer {
    Status(u16),
    /// With this number of seconds in `Retry-After`.
    Busy(u16, u64),
    /// Ends this task before it answers.
    Kill(AbortHandle),
}

/// A receiver on this machine.
pub(super) struct Receiver {
    pub(super) port: u16,
    state: ReceiverState,
    _server: JoinHandle<()>,
}

#[derive(Clone)]
struct ReceiverState {
    /// The keys of the requests, in order.
    keys: watch::Sender<Vec<String>>,
    /// The answers to the next requests; 204 when there are none left.
    answers: Arc<Mutex<VecDeque<ReceiverAnswer>>>,
    /// What every request is answered with, if all are alike.
    always: Option<u16>,
    bodies: Arc<Mutex<Vec<String>>>,
}

async fn receive(State(state): State<ReceiverState>, headers: HeaderMap, body: String) -> Response {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    state.bodies.lock().unwrap().push(body);
    state.keys.send_modify(|keys| keys.push(key));
    let next = state.answers.lock().unwrap().pop_front();
    match next.or(state.always.map(ReceiverAnswer::Status)) {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(ReceiverAnswer::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(ReceiverAnswer::Busy(status, secs)) => {
            (StatusCode::from_u16(status).unwrap(), [("retry-after", secs.to_string())]).into_response()
        }
        Some(ReceiverAnswer::Kill(task)) => {
            task.abort();
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

impl Receiver {
    pub(super) async fn start(answers: impl IntoIterator<Item = ReceiverAnswer>) -> Receiver {
        Receiver::with(answers.into_iter().collect(), None).await
    }

    pub(super) async fn always(status: u16) -> Receiver {
        Receiver::with(VecDeque::new(), Some(status)).await
    }

    async fn with(answers: VecDeque<ReceiverAnswer>, always: Option<u16>) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = ReceiverState {
            keys: watch::Sender::new(Vec::new()),
            answers: Arc::new(Mutex::new(answers)),
            always,
            bodies: Arc::default(),
        };
        let pages = Pages::new().route("/hook", post(receive)).with_state(state.clone());
        let server = tokio::spawn(async move { axum::serve(listener, pages).await.unwrap() });
        Receiver { port, state, _server: server }
    }

    pub(super) fn answer_next(&self, answer: ReceiverAnswer) {
        self.state.answers.lock().unwrap().push_back(answer);
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.state.keys.borrow().clone()
    }

    pub(super) fn last_body(&self) -> serde_json::Value {
        serde_json::from_str(self.state.bodies.lock().unwrap().last().unwrap()).unwrap()
    }

    /// Waits until this many requests have come.
    pub(super) async fn requests(&self, count: usize) -> Vec<String> {
        self.until(|keys| keys.len() >= count).await
    }

    /// Waits until a request with this key has come.
    pub(super) async fn key(&self, wanted: &str) -> Vec<String> {
        self.until(|keys| keys.iter().any(|key| key == wanted)).await
    }

    async fn until(&self, holds: impl Fn(&Vec<String>) -> bool) -> Vec<String> {
        self.state.keys.subscribe().wait_for(holds).await.unwrap().clone()
    }
}

/// A directory with a state file, and channels that run over a feed.
pub(super) struct Desk {
    folder: TempDir,
    pub(super) feed: TestFeed,
    stop: watch::Sender<bool>,
}

impl Desk {
    pub(super) fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        Desk { folder, feed: TestFeed::new(), stop: watch::Sender::new(false) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("notify.json")
    }

    /// The state file, which the channels of one run share. A write of a run that was killed may hold it for
    /// a moment.
    pub(super) fn state(&self) -> Arc<StateFile> {
        loop {
            match StateFile::open(&self.path()) {
                Ok(file) => return Arc::new(file),
                Err(NotifyError::InUse { .. }) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// A webhook of this name to a port of this machine, with 20 messages a minute.
    pub(super) fn webhook(name: &str, port: u16) -> ChannelConfig {
        ChannelConfig {
            name: name.to_owned(),
            kind: ChannelKind::Webhook(None),
            url: FileSecret::of(&format!("http://127.0.0.1:{port}/hook")),
            authorities: None,
            address: ChannelAddress::Everybody,
            most_per_minute: 20,
        }
    }

    /// Runs a channel that takes every failure, and is the default one.
    pub(super) fn run(&self, state: &Arc<StateFile>, channel: ChannelConfig) -> JoinHandle<()> {
        let name = channel.name.clone();
        let events = vec!["fail".parse().unwrap(), "node-lost".parse().unwrap()];
        let routes = vec![Route { events, to: vec![name.clone()], users: Vec::new() }];
        let config =
            NotifyConfig { state: self.path(), channels: vec![channel], routes, default: name.clone() };
        let (_, problems) = broadcast::channel(1);
        let parts = FollowerParts {
            source: self.feed.clone(),
            channel: config.channels[0].clone(),
            router: Router::of(&config, &name),
            sender: Arc::new(Sender::with_limit(&config.channels[0], Duration::from_secs(3)).unwrap()),
            state: Arc::clone(state),
            problems,
            stop: self.stop.subscribe(),
        };
        tokio::spawn(Follower::new(parts).run())
    }

    /// Begins at the start of the feed, as if an earlier run had ended there.
    pub(super) fn begin(&self, names: &[&str]) -> Arc<StateFile> {
        let state = self.state();
        for name in names {
            let start = crate::state_file::ChannelState::new(FeedCursor::START, Vec::new());
            state.note(name, start).unwrap();
        }
        state
    }

    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}

/// The cursor of an entry of the tests' feed.
pub(super) fn cursor(number: u64) -> FeedCursor {
    FeedCursor { number, at: at(10) }
}
