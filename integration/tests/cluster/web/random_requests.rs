//! Random requests: each gets an answer, none an internal failure, and none without session, origin and key
//! changes anything.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use super::http::request;
use super::server::WebServer;
use crate::kit::Cluster;

const METHODS: [&str; 7] = ["GET", "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"];

/// Parts of addresses: ours, and what a server might trip over. `log` without `from` is no long poll.
const SEGMENTS: [&str; 28] = [
    "jobs",
    "1",
    "1.1",
    "999",
    "cancel",
    "requeue",
    "hold",
    "kill",
    "confirm",
    "log",
    "queue",
    "nodes",
    "timeline",
    "arrays",
    "people",
    "enter",
    "assets",
    "style.css",
    "..",
    "%2e%2e",
    "%2F",
    "%00",
    "%E2%80%AE",
    "%ff",
    "%zz",
    "18446744073709551616",
    "",
    "-1",
];
const KEYS: [&str; 10] = ["state", "user", "name", "hours", "rank", "attempt", "after", "key", "page", "x"];
const VALUES: [&str; 10] =
    ["", "all", "ended", "1", "-1", "4294967296", "%3Cscript%3E", "%00", "%ff", "nothing"];

/// What a request says of where it comes from.
#[derive(Debug, Clone)]
struct RequestSource {
    has_session: bool,
    has_origin: bool,
    site: Option<&'static str>,
    is_by_script: bool,
}

#[derive(Debug, Clone)]
struct AnyRequest {
    method: &'static str,
    address: String,
    source: RequestSource,
    body: String,
}

fn requests() -> impl Strategy<Value = AnyRequest> {
    let path =
        prop::collection::vec(select(&SEGMENTS[..]), 0..5).prop_map(|parts| format!("/{}", parts.join("/")));
    let change =
        select(&["cancel", "requeue", "hold", "release"][..]).prop_map(|verb| format!("/jobs/1/{verb}"));
    let pairs = prop::collection::vec((select(&KEYS[..]), select(&VALUES[..])), 0..4);
    let address = (prop_oneof![3 => path, 1 => change], pairs).prop_map(|(path, pairs)| {
        let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{path}?{}", pairs.join("&"))
    });
    let site = select(&[None, Some("same-origin"), Some("cross-site"), Some("none")][..]);
    let source = (any::<bool>(), any::<bool>(), site, any::<bool>()).prop_map(
        |(has_session, has_origin, site, is_by_script)| RequestSource {
            has_session,
            has_origin,
            site,
            is_by_script,
        },
    );
    (select(&METHODS[..]), address, source, "[ -~]{0,40}")
        .prop_map(|(method, address, source, body)| AnyRequest { method, address, source, body })
        // A change by a page of ours is the one that counts.
        .prop_filter("it may change something", |it| {
            let RequestSource { has_session, has_origin, site, .. } = it.source;
            !(has_session && has_origin && site == Some("same-origin") && it.method == "POST")
        })
}

#[test]
fn no_random_request_breaks_the_server_or_changes_a_job() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], "sleep 1000");
    assert_eq!(job, "1", "the addresses name it");
    cluster.until_state(&job, "RUNNING");
    let mut server = WebServer::start(&cluster, &[]);
    let session = server.session();
    let (host, origin) = (server.host(), format!("http://{}", server.host()));
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let sent = runner.run(&requests(), |asked| {
        let AnyRequest { method, address, source, body } = &asked;
        let mut headers = vec![("Host", host.as_str())];
        headers.extend(source.has_session.then_some(("Cookie", session.as_str())));
        headers.extend(source.has_origin.then_some(("Origin", origin.as_str())));
        headers.extend(source.site.map(|site| ("Sec-Fetch-Site", site)));
        headers.extend(source.is_by_script.then_some(("HX-Request", "true")));
        let answer = request(server.port, method, address, &headers, body);
        let is_expected = [200, 303, 400, 403, 404, 405, 409, 413].contains(&answer.status);
        prop_assert!(is_expected, "{asked:?}: {answer:?}");
        let may_see = source.has_session || address.starts_with("/assets/");
        prop_assert!(may_see || answer.status != 200, "{asked:?}: {answer:?}");
        prop_assert!(answer.status != 303, "a change or a session: {asked:?}: {answer:?}");
        prop_assert!(!answer.body.contains("<script>"), "{asked:?}: {answer:?}");
        Ok(())
    });
    sent.unwrap();
    let shown = cluster.show(&job);
    assert_eq!((shown["state"].as_str(), shown["attempt"].as_u64()), (Some("RUNNING"), Some(1)), "{shown}");
    assert_eq!(
        server.post(&session, &format!("/jobs/{job}/cancel")).status,
        303,
        "by a page of ours it works"
    );
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");
}
