//! What a head tells its admins of its setup.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cohabit_types::{PrivateData, RefusalCode, Span, TokenFileStatus};

use crate::test_kit::cluster::TestHead;

#[tokio::test]
async fn admins_learn_how_the_head_is_set_up() {
    let head = TestHead::start_like(|options| {
        options.private_data = PrivateData::On;
        options.user_token_lifetime = Some(Span::from_secs(60));
    });
    let head = head.await;
    let (admin, token) = (head.admin().await, head.daemon.admin_token_file());
    let status = admin.head_status().await.unwrap();
    assert_eq!(status.listens_on, head.daemon.address().to_string());
    assert_eq!(status.private_data, PrivateData::On);
    assert_eq!(status.user_token_lifetime, Some(Span::from_secs(60)));
    assert_eq!(status.admin_token_file, TokenFileStatus::Mode(0o600));

    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(admin.head_status().await.unwrap().admin_token_file, TokenFileStatus::Mode(0o644));
    fs::remove_file(&token).unwrap();
    assert_eq!(admin.head_status().await.unwrap().admin_token_file, TokenFileStatus::Missing);
}

#[tokio::test]
async fn users_do_not_learn_how_the_head_is_set_up() {
    let head = TestHead::start().await;
    let refusal = head.user("eve").await.head_status().await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::NotAllowed);
}
