//! What a head's log tells about those it turns away, and what no log ever tells.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use futures::{SinkExt, StreamExt};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::refusals::secured;
use super::*;
use crate::{MAX_FRAME, PROTOCOL_VERSION, frames};

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;
    fn make_writer(&self) -> Log {
        self.clone()
    }
}

/// One thread runs client and head alike, so the log of that thread is the log of both.
#[tokio::test]
async fn refusals_are_logged_with_address_and_reason_and_secrets_never() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let head = TestHead::start().await;
    let good = head.endpoint("ada", Role::User, None);
    let expired = head.endpoint("bea", Role::User, Some(Span::ZERO));
    let (client, _welcome) = connect_client(&good).await.unwrap();
    client.ping(patient()).await.unwrap();
    assert!(connect_client(&expired).await.is_err());
    let mut frames = frames::frames(secured(&head.address, good.token.fingerprint()).await, MAX_FRAME);
    frames.send(of_another_version(0, "0.0.1")).await.unwrap();
    in_time(frames.next()).await.unwrap().unwrap();

    let text = log.text();
    let refused: Vec<_> = text.lines().filter(|line| line.contains("refused a connection")).collect();
    let reasons = ["the token has expired", &format!("protocol {PROTOCOL_VERSION}: upgrade it")];
    assert_eq!(refused.len(), reasons.len(), "{refused:?}");
    for (line, reason) in refused.iter().zip(reasons) {
        for part in ["WARN", "address=127.0.0.1:", reason] {
            assert!(line.contains(part), "{part} in: {line}");
        }
    }
    for endpoint in [&good, &expired] {
        let token = endpoint.token.expose();
        let secret = token.rsplit_once('.').unwrap().1;
        assert!(!text.contains(secret));
        assert!(!format!("{endpoint:?}").contains(secret));
    }
}
