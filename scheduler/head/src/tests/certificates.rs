//! The certificate of a head that runs.

use std::fs;
use std::time::Duration;

use tokio::time::sleep;

use crate::test_kit::cluster::{TestHead, within};

#[tokio::test]
async fn a_running_head_renews_its_certificate_and_serves_on() {
    let head = TestHead::start_like(|options| options.certificate_check = Duration::from_millis(10)).await;
    let admin = head.admin().await;
    let path = head.folder.path().join("tls/head.pem");
    fs::write(&path, "not a certificate").unwrap();
    let renewed = async {
        while fs::read(&path).unwrap() == b"not a certificate" {
            sleep(Duration::from_millis(5)).await;
        }
    };
    within(renewed).await;
    admin.nodes().await.unwrap();
    head.admin().await.nodes().await.unwrap();
}
