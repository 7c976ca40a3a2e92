//! The cluster: whether it may be opened to users who do not trust each other, as far as the head can tell.
//!
//! Each file below holds the checks of one answer of the head.

mod node_checks;
mod setup_checks;
mod token_checks;

use std::time::Duration;

use cohabit_client::{Client, Error};

use super::findings::Finding;
use crate::clock::now;
use crate::config::Settings;
use crate::endpoint::resolve_endpoint;

const CLUSTER: &str = "cluster";
const SERVICE: &str = "service";
/// Time limit for each answer of the head.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let endpoint = match resolve_endpoint(settings) {
        Ok(endpoint) => endpoint,
        Err(failure) => {
            return vec![Finding::error(CLUSTER, failure.message, "name the head and the token of an admin")];
        }
    };
    match in_time(Client::connect(endpoint)).await {
        Ok(client) => findings(&client).await,
        Err(why) => vec![Finding::error(CLUSTER, "cannot connect to the head", why)],
    }
}

async fn findings(client: &Client) -> Vec<Finding> {
    let build = match in_time(client.accepted()).await {
        Ok(accepted) => accepted.build,
        Err(why) => return vec![Finding::error(CLUSTER, "the head does not answer", why)],
    };
    let setup = in_time(client.head_status()).await;
    let problems = in_time(client.head_problems()).await;
    let nodes = in_time(client.nodes()).await;
    let tokens = in_time(client.tokens()).await;
    let mut findings = setup.map_or_else(|why| unchecked("head", why), |it| setup_checks::check(&it));
    findings.extend(problems.map_or_else(|why| unchecked(SERVICE, why), |it| vec![service(&it)]));
    findings.extend(nodes.map_or_else(|why| unchecked("nodes", why), |it| node_checks::check(&it, &build)));
    findings.extend(tokens.map_or_else(|why| unchecked("tokens", why), |it| token_checks::check(&it, now())));
    findings
}

/// Whether the head accepts changes.
fn service(problems: &[String]) -> Finding {
    match problems {
        [] => Finding::ok(SERVICE, "the head accepts changes"),
        problems => Finding::error(SERVICE, problems.join("; "), "follow the remedy that each problem names"),
    }
}

/// A check that cannot be made is never passed in silence.
fn unchecked(check: &'static str, why: String) -> Vec<Finding> {
    vec![Finding::error(check, "not checked", why)]
}

async fn in_time<T>(asked: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match tokio::time::timeout(TIMEOUT, asked).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err("no answer within 10 s".to_owned()),
    }
}
