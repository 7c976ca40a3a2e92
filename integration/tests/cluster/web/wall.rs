//! A wall screen: pages by HTTPS, with the token of a viewer.

use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use super::http::connect;
use super::server::WebServer;
use crate::kit::{Cluster, until};

/// A certificate for this machine with its key as files, and a client that trusts it.
pub(crate) fn certificate(cluster: &Cluster) -> (String, String, Arc<ClientConfig>) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let (certificate, key) = (cluster.path("wall.crt"), cluster.path("wall.key"));
    std::fs::write(&certificate, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (certificate, key, Arc::new(client))
}

#[test]
fn a_wall_screen_shows_jobs_by_https_and_changes_nothing() {
    let cluster = Cluster::start(&["host:1"]);
    let script =
        r#"echo '{"step": 1, "loss": 0.5}' >> $COHABIT_PROGRESS; echo secret-$((6 * 7)); sleep 1000"#;
    let job = cluster.submit(&["--name", "on-the-wall"], script);
    cluster.until_state(&job, "RUNNING");
    let token = cluster.token("wall.token", &["--role", "viewer", "--name", "wall"]);
    let head = cluster.address();
    let (certificate, key, client) = certificate(&cluster);
    let flags = ["--head", &head, "--token-file", &token, "--tls-cert", &certificate, "--tls-key", &key];
    let mut server = WebServer::start_with(&cluster, &flags, Some(client));
    assert!(server.entry.starts_with("https://127.0.0.1:"), "{}", server.entry);
    let session = server.session();
    until("the job is shown", || server.page(&session, "/queue").contains("on-the-wall"));
    for path in ["/", "/nodes", "/timeline", "/arrays", "/people"] {
        server.page(&session, path);
    }
    let page = server.page(&session, &format!("/jobs/{job}"));
    assert!(page.contains("on-the-wall") && page.contains("A viewer does not see"), "{page}");
    assert!(!page.contains("/confirm/") && !page.contains("id=\"log\""), "{page}");
    assert!(!page.contains("secret-42") && !page.contains("sleep 1000"), "{page}");
    let log = server.page(&session, &format!("/jobs/{job}/log?rank=0&attempt=1&from=0"));
    assert!(log.contains("has the role viewer") && !log.contains("secret-42"), "{log}");
    for change in ["cancel", "requeue", "hold", "release"] {
        let question = server.get(&format!("/jobs/{job}/confirm/{change}"), &[("Cookie", &session)]);
        assert_eq!(question.status, 403, "{change}: {question:?}");
        let refused = server.post(&session, &format!("/jobs/{job}/{change}"));
        assert_eq!(refused.status, 403, "{change}: {refused:?}");
        assert!(refused.body.contains("role viewer"), "{refused:?}");
    }
    assert_eq!(cluster.state(&job), "RUNNING");

    // Other names than those of the certificate and this machine are not served.
    let evil = format!("evil.example:{}", server.port);
    let headers = [("Host", evil.as_str()), ("Cookie", session.as_str())];
    assert!([400, 403].contains(&server.get("/", &headers).status));

    // Plain HTTP ends at once, and the server goes on.
    let mut plain = connect(server.port);
    plain.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1"), "{answer:?}");
    server.page(&session, "/nodes");
}

#[test]
fn other_machines_reach_only_what_a_viewer_sees_and_only_by_https() {
    let cluster = Cluster::start(&[]);
    let (certificate, key, _) = certificate(&cluster);
    let (user, viewer) = (
        cluster.token("ada.token", &["--role", "user", "--name", "ada"]),
        cluster.token("wall.token", &["--role", "viewer", "--name", "wall"]),
    );
    let head = cluster.address();
    // No machine has this address: it is for documents (RFC 5737). Nothing can listen there.
    let web = |token: &str, flags: &[&str]| {
        let fixed = ["web", "--listen", "192.0.2.1:0", "--head", &head, "--token-file", token];
        cluster.run(&[&fixed[..], flags].concat())
    };
    let tls = ["--tls-cert", certificate.as_str(), "--tls-key", &key];
    for (token, flags, code, words) in [
        (&user, &tls[..], 2, "--role viewer"),
        (&user, &[], 2, "--tls-cert"),
        (&viewer, &[], 2, "--tls-cert"),
        (&viewer, &tls[..2], 2, "--tls-key"),
        (&viewer, &["--tls-cert", &key, "--tls-key", &key], 78, "--tls-cert"),
        // All is well but for the address.
        (&viewer, &tls[..], 74, "cannot listen on 192.0.2.1"),
    ] {
        let refused = web(token, flags);
        assert_eq!(refused.code, code, "{flags:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{flags:?}: {}", refused.stderr);
    }
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let refused = web(&viewer, &tls);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    assert!(refused.stderr.contains("chmod 600"), "{}", refused.stderr);
}
