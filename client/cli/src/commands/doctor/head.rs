//! The head: whether it answers, its clock agrees with ours and our token lasts; without a head, whether its
//! port is free.
//!
//! A head does not report its clock. Its latest records show whether its clock is ahead of ours.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use cohabit_client::types::{Filter, NodeRecord, Span, Time, TokenRecord};
use cohabit_client::{Client, Error};

use super::findings::Finding;
use crate::clock::now;
use crate::config::{SettingKey, Settings};
use crate::endpoint::resolve_endpoint;

const HEAD: &str = "head";
const CLOCK: &str = "clock";
const TOKEN: &str = "token";
const PORT: &str = "port";
/// The default address of a head.
const DEFAULT_ADDRESS: &str = "0.0.0.0:7070";
/// A larger difference makes times in listings confusing.
const MAX_CLOCK_SKEW: Span = Span::from_secs(2);
/// Time limit for an answer of the head.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let endpoint = match resolve_endpoint(settings) {
        Ok(endpoint) => endpoint,
        Err(failure) => {
            let advice =
                "start a head on this machine with `cohabit up`, or name one with --head and --token-file";
            return vec![Finding::warning(HEAD, failure.message, advice), port(settings)];
        }
    };
    let started = Instant::now();
    let answered = tokio::time::timeout(TIMEOUT, Client::connect(endpoint)).await;
    match answered {
        Ok(Ok(client)) => answering(&client, started.elapsed()).await,
        Ok(Err(error)) => vec![Finding::error(HEAD, "cannot connect", error.to_string()), port(settings)],
        Err(_) => vec![
            Finding::error(HEAD, "no answer within 5 s", "check the network and the firewall"),
            port(settings),
        ],
    }
}

async fn answering(client: &Client, within: Duration) -> Vec<Finding> {
    let answers = Finding::ok(HEAD, format!("{} answers in {}", client.head(), Span::from(within)));
    let observed = latest(client).await;
    let clock = observed.map_or_else(
        |error| Finding::warning(CLOCK, "cannot determine the clock of the head", error.to_string()),
        |latest| clock(latest, now()),
    );
    let own = client.own_token().await;
    let own = own.map_or_else(
        |error| Finding::warning(TOKEN, "cannot determine when this token expires", error.to_string()),
        |own| token(&own, now()),
    );
    vec![answers, clock, own]
}

/// When the token of this client expires.
fn token(own: &TokenRecord, now: Time) -> Finding {
    let shown = format!("the token '{}' with role {}", own.name, own.role);
    match (own.ends_soon(now), own.expires_at) {
        (Some(left), _) => Finding::warning(
            TOKEN,
            format!("{shown} expires in {left}"),
            "ask an admin for a new one (`cohabit token create`)",
        ),
        (None, Some(at)) => Finding::ok(TOKEN, format!("{shown} expires in {}", at.since(now))),
        (None, None) => Finding::ok(TOKEN, format!("{shown} does not expire")),
    }
}

/// The latest time in any record of the head.
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
        None => Finding::ok(CLOCK, "the head has no records yet to compare with"),
        Some(ahead) if ahead > MAX_CLOCK_SKEW => Finding::error(
            CLOCK,
            format!("the clock of the head is at least {ahead} ahead of this one"),
            "synchronise both with a time server (chrony, systemd-timesyncd)",
        ),
        Some(_) => Finding::ok(CLOCK, "the clock of the head is not ahead of this one"),
    }
}

/// Whether a head could listen on its address on this machine.
fn port(settings: &Settings) -> Finding {
    let text = settings.find(SettingKey::Listen).map_or(DEFAULT_ADDRESS, |setting| setting.text);
    let Ok(address) = text.parse::<SocketAddr>() else {
        return Finding::error(
            PORT,
            format!("'{text}' is not an address to listen on"),
            "write for example 0.0.0.0:7070",
        );
    };
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(PORT, format!("{address} is free for a head")),
        Err(error) => Finding::warning(
            PORT,
            format!("cannot listen on {address} ({error})"),
            "choose another address with --listen",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Diagnosis;
    use super::*;
    use crate::config::read_settings;
    use crate::render::samples::{at, tokens};

    #[test]
    fn a_head_whose_clock_is_ahead_is_an_error() {
        let now = Time::EPOCH + Span::from_secs(1_000);
        let status_of = |latest| clock(latest, now).status;
        assert_eq!(status_of(Some(now + Span::from_secs(60))), Diagnosis::Error);
        assert_eq!(status_of(Some(now + Span::from_secs(1))), Diagnosis::Ok);
        assert_eq!(status_of(Some(now - Span::from_secs(60))), Diagnosis::Ok);
        assert_eq!(status_of(None), Diagnosis::Ok);
    }

    #[test]
    fn a_token_that_expires_within_a_month_is_a_warning() {
        let [admin, ada, ..] = &tokens()[..] else { panic!("there are samples") };
        assert_eq!(token(admin, at(0)).status, Diagnosis::Ok);
        let day = 86_400;
        let soon = token(ada, at(10 * day));
        assert_eq!(soon.status, Diagnosis::Warning);
        assert_eq!(soon.observed, "the token 'ada' with role user expires in 20 d 0 h");
        let later = TokenRecord { expires_at: Some(at(100 * day)), ..ada.clone() };
        assert_eq!(token(&later, at(0)).status, Diagnosis::Ok);
    }

    #[test]
    fn a_port_in_use_is_a_warning() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let written = [(SettingKey::Listen, taken.local_addr().unwrap().to_string())].into();
        let found = port(&read_settings(written).unwrap());
        assert_eq!(found.status, Diagnosis::Warning);
        assert!(found.observed.contains(&taken.local_addr().unwrap().to_string()));
    }
}
