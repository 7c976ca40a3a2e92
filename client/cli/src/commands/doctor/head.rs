//! The head: that it answers, that our clocks agree, and whether its port is free where none runs.
//!
//! A head tells no clock of its own, so its latest records have to do: they show whether it is ahead of us.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use cohabit_client::proto::{Filter, NodeRecord, Span, Time};
use cohabit_client::{Client, Error};

use super::findings::Finding;
use crate::clock::now;
use crate::config::{SettingKey, Settings};
use crate::endpoint::resolve_endpoint;

const HEAD: &str = "head";
const CLOCK: &str = "clock";
const PORT: &str = "port";
/// Where a head listens unless told otherwise.
const DEFAULT_ADDRESS: &str = "0.0.0.0:7070";
/// Clocks that differ by more than this confuse people who compare times.
const MAX_CLOCK_SKEW: Span = Span::from_secs(2);
/// How long a head may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let endpoint = match resolve_endpoint(settings) {
        Ok(endpoint) => endpoint,
        Err(failure) => {
            let advice = "start one here with `cohabit up`, or name one with --head and --token-file";
            return vec![Finding::warning(HEAD, failure.message, advice), port(settings)];
        }
    };
    let started = Instant::now();
    let answered = tokio::time::timeout(TIMEOUT, Client::connect(endpoint)).await;
    match answered {
        Ok(Ok(client)) => answering(&client, started.elapsed()).await,
        Ok(Err(error)) => vec![Finding::error(HEAD, "no link", error.to_string()), port(settings)],
        Err(_) => vec![
            Finding::error(HEAD, "no answer within 5 s", "check the network and the firewall"),
            port(settings),
        ],
    }
}

async fn answering(client: &Client, within: Duration) -> Vec<Finding> {
    let answers = Finding::ok(HEAD, format!("{} answers in {}", client.head(), Span::from(within)));
    let seen = latest(client).await;
    let clock = seen.map_or_else(
        |error| Finding::warning(CLOCK, "the head's clock is not known", error.to_string()),
        |latest| clock(latest, now()),
    );
    vec![answers, clock]
}

/// The latest time that the head tells in any record.
async fn latest(client: &Client) -> Result<Option<Time>, Error> {
    let jobs = client
        .list_all(Filter { ended_after: Some(now() - Span::from_secs(3_600)), ..Filter::default() })
        .await?;
    let of_jobs =
        jobs.iter().flat_map(|job| [Some(job.submitted_at), job.started_at, job.ended_at]).flatten();
    let nodes = client.nodes().await?;
    Ok(of_jobs.chain(nodes.iter().map(since)).max())
}

fn since(node: &NodeRecord) -> Time {
    node.since
}

fn clock(latest: Option<Time>, now: Time) -> Finding {
    match latest.map(|latest| latest.since(now)) {
        None => Finding::ok(CLOCK, "the head has told no time yet to compare with"),
        Some(ahead) if ahead > MAX_CLOCK_SKEW => Finding::error(
            CLOCK,
            format!("the head's clock is at least {ahead} ahead of this one"),
            "let both follow a time server (chrony, systemd-timesyncd)",
        ),
        Some(_) => Finding::ok(CLOCK, "the head's clock is not ahead of this one"),
    }
}

/// Whether a head could listen here.
fn port(settings: &Settings) -> Finding {
    let text = settings.find(SettingKey::Listen).map_or(DEFAULT_ADDRESS, |setting| setting.text);
    let Ok(address) = text.parse::<SocketAddr>() else {
        return Finding::error(
            PORT,
            format!("'{text}' is no address to listen on"),
            "write it like 0.0.0.0:7070",
        );
    };
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(PORT, format!("{address} is free for a head")),
        Err(error) => Finding::warning(
            PORT,
            format!("{address} cannot be listened on ({error})"),
            "choose another with --listen",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Diagnosis;
    use super::*;

    #[test]
    fn a_head_from_the_future_is_told() {
        let now = Time::EPOCH + Span::from_secs(1_000);
        let judged = |latest| clock(latest, now).status;
        assert_eq!(judged(Some(now + Span::from_secs(60))), Diagnosis::Error);
        assert_eq!(judged(Some(now + Span::from_secs(1))), Diagnosis::Ok);
        assert_eq!(judged(Some(now - Span::from_secs(60))), Diagnosis::Ok);
        assert_eq!(judged(None), Diagnosis::Ok);
    }

    #[test]
    fn a_port_in_use_is_told() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let written = [(SettingKey::Listen, taken.local_addr().unwrap().to_string())].into();
        let found = port(&Settings::with_flags(written).unwrap());
        assert_eq!(found.status, Diagnosis::Warning);
        assert!(found.observed.contains(&taken.local_addr().unwrap().to_string()));
    }
}
