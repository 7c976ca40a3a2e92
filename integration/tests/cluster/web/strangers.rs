//! What strangers, other users and pages of other origins can do: nothing.

use super::http::request;
use super::server::{WebServer, path_of};
use crate::kit::Cluster;

#[test]
fn a_key_opens_the_pages_once() {
    let cluster = Cluster::start(&[]);
    let mut server = WebServer::start(&cluster, &[]);
    assert_eq!(server.get("/", &[]).status, 403, "without a session");
    assert_eq!(server.get("/enter?key=0123", &[]).status, 403, "an invented key");
    assert_eq!(server.get("/enter", &[]).status, 403, "no key");
    let entry = server.entry.clone();
    assert_eq!(server.get(path_of(&entry), &[]).status, 303);
    let again = server.get(path_of(&entry), &[]);
    assert_eq!((again.status, again.header("set-cookie")), (403, None), "a used key");
    assert!(again.body.contains("used before"), "{}", again.body);
    let session = server.session();
    assert!(server.page(&session, "/").contains("<h1>Cluster</h1>"));
    let forged = format!("{}=0000", session.split('=').next().unwrap());
    assert_eq!(server.get("/", &[("Cookie", &forged)]).status, 403);
}

#[test]
fn another_host_name_gets_nothing_even_with_a_session() {
    let cluster = Cluster::start(&[]);
    let mut server = WebServer::start(&cluster, &[]);
    let session = server.session();
    let port = server.port;
    let evil = format!("evil.example:{port}");
    for host in [evil.as_str(), "evil.example", "", "127.0.0.1.evil.example", "0.0.0.0"] {
        for path in ["/", "/assets/style.css", path_of(&server.entry.clone())] {
            let answer = request(port, "GET", path, &[("Host", host), ("Cookie", &session)], "");
            assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{host} {path}");
        }
    }
    let twice = [("Host", "127.0.0.1"), ("Host", "evil.example"), ("Cookie", session.as_str())];
    assert!([400, 403].contains(&request(port, "GET", "/", &twice, "").status));
    assert_eq!(request(port, "GET", "/", &[("Host", "localhost:9"), ("Cookie", &session)], "").status, 200);
}

/// A method, headers, and the status of the answer.
type Case<'a> = (&'static str, &'a [(&'a str, &'a str)], u16);

#[test]
fn a_change_from_elsewhere_changes_nothing() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], "sleep 1000");
    cluster.until_state(&job, "RUNNING");
    let mut server = WebServer::start(&cluster, &[]);
    let session = server.session();
    let (path, host) = (format!("/jobs/{job}/cancel"), server.host());
    let own = format!("http://{host}");
    let cases: [Case<'_>; 9] = [
        ("POST", &[("Origin", &own), ("Sec-Fetch-Site", "same-origin")], 403),
        ("POST", &[("Cookie", &session)], 403),
        ("POST", &[("Cookie", &session), ("Origin", &own)], 403),
        ("POST", &[("Cookie", &session), ("Sec-Fetch-Site", "same-origin")], 403),
        ("POST", &[("Cookie", &session), ("Origin", &own), ("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", &[("Cookie", &session), ("Origin", &own), ("Sec-Fetch-Site", "same-site")], 403),
        ("POST", &[("Cookie", &session), ("Origin", "null"), ("Sec-Fetch-Site", "same-origin")], 403),
        ("GET", &[("Cookie", &session)], 405),
        ("DELETE", &[("Cookie", &session), ("Origin", &own), ("Sec-Fetch-Site", "same-origin")], 405),
    ];
    for (method, headers, status) in cases {
        let headers = [&[("Host", host.as_str()), ("Content-Length", "0")], headers].concat();
        let answer = request(server.port, method, &path, &headers, "");
        assert_eq!(answer.status, status, "{method} {headers:?}: {answer:?}");
    }
    let large = "x".repeat(10_000);
    let headers = [
        ("Host", host.as_str()),
        ("Cookie", session.as_str()),
        ("Origin", own.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    assert_eq!(request(server.port, "POST", &path, &headers, &large).status, 413);
    assert_eq!(cluster.state(&job), "RUNNING");
    assert_eq!(server.post(&session, &path).status, 303);
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");
}

#[test]
fn a_user_cannot_change_or_read_the_jobs_of_others() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&["--name", "of-the-admin"], "echo secret-$((6 * 7)); sleep 1000");
    cluster.until_state(&job, "RUNNING");
    let token = cluster.token("bob.token", &["--role", "user", "--name", "bob"]);
    let head = cluster.address();
    let mut server = WebServer::start(&cluster, &["--head", &head, "--token-file", &token]);
    let session = server.session();
    let page = server.page(&session, &format!("/jobs/{job}"));
    assert!(page.contains("of-the-admin") && !page.contains("secret-42"), "{page}");
    assert!(page.contains("only its owner and admins may read its logs"), "{page}");
    assert!(!page.contains("/confirm/cancel"), "no button that will be refused");
    for change in ["cancel", "requeue"] {
        let refused = server.post(&session, &format!("/jobs/{job}/{change}"));
        assert_eq!(refused.status, 403, "{change}: {refused:?}");
    }
    assert_eq!(cluster.state(&job), "RUNNING");
    assert_eq!(server.post(&session, &format!("/jobs/{job}/kill")).status, 404, "no page offers it");
    assert_eq!(server.post(&session, "/jobs/999/cancel").status, 404);
}

#[test]
fn an_address_that_other_machines_reach_is_refused() {
    let cluster = Cluster::start(&[]);
    let refused = cluster.run(&["web", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("ssh -L"), "{}", refused.stderr);
}
