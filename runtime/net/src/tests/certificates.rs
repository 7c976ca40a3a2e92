//! The head's certificate is renewed while it listens.

use super::*;
use crate::LinkError;

const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Why a new client cannot connect.
async fn refusal(head: &TestHead, name: &str) -> LinkError {
    connect_client(&head.endpoint(name, Role::User, None)).await.err().unwrap()
}

#[tokio::test]
async fn a_running_head_replaces_a_certificate_that_is_not_valid_at_the_present_clock() {
    let now = SystemTime::now();
    for certified in [now - 6 * YEAR, now + 30 * DAY] {
        let head = TestHead::start_at(ListenerLimits::default(), certified).await;
        let error = refusal(&head, "early").await;
        assert!(matches!(error, LinkError::BadCertificate { .. }), "{error}");
        head.renewal.check(now).unwrap();
        head.assert_serves("late").await;
    }
}

#[tokio::test]
async fn links_outlive_a_renewal_and_a_good_certificate_stays() {
    let now = SystemTime::now();
    let head = TestHead::start().await;
    let (client, pem) = (head.client("ada").await, head.state.path().join("head.pem"));
    let stored = || std::fs::read(&pem).unwrap();
    let first = stored();
    head.renewal.check(now).unwrap();
    assert_eq!(stored(), first);
    head.renewal.check(now + 4 * YEAR + DAY).unwrap();
    assert_ne!(stored(), first);
    client.ping(tarpc::context::current()).await.unwrap();
}

#[tokio::test]
async fn a_head_that_cannot_renew_keeps_its_certificate() {
    let head = TestHead::start().await;
    std::fs::remove_file(head.state.path().join("ca.key")).unwrap();
    let error = head.renewal.check(SystemTime::now() + 6 * YEAR).unwrap_err().to_string();
    assert!(error.contains("ca.key"), "{error}");
    head.assert_serves("ada").await;
}
