//! The lifetimes of tokens that admins create.

use cohabit_types::{NewToken, RefusalCode, Role, Span, TokenRecord};

use crate::test_kit::cluster::{TestClient, TestHead};

const DAY: Span = Span::from_secs(86_400);
const YEAR: Span = Span::from_secs(365 * 86_400);

/// How long a new token of this role is good for.
async fn lifetime(admin: &TestClient, role: Role, expires_in: Option<Span>) -> Option<Span> {
    let count = admin.tokens().await.unwrap().len();
    let name = format!("token-{count}");
    let new = NewToken { name: name.clone(), role, account: None, node: None, expires_in };
    admin.create_token(new).await.unwrap();
    let is_new = |token: &TokenRecord| token.name == name;
    let created = admin.tokens().await.unwrap().into_iter().find(is_new).unwrap();
    created.expires_at.map(|at| at.since(created.created_at))
}

#[tokio::test]
async fn tokens_of_users_expire_after_a_year_unless_an_admin_says_otherwise() {
    let head = TestHead::start().await;
    let admin = head.admin().await;
    assert_eq!(lifetime(&admin, Role::User, None).await, Some(YEAR));
    assert_eq!(lifetime(&admin, Role::User, Some(DAY)).await, Some(DAY));
    assert_eq!(lifetime(&admin, Role::User, Some(NewToken::FOREVER)).await, None);
    for role in [Role::Worker, Role::Admin] {
        assert_eq!(lifetime(&admin, role, None).await, None);
        assert_eq!(lifetime(&admin, role, Some(DAY)).await, Some(DAY));
    }
}

#[tokio::test]
async fn a_head_has_a_lifetime_for_tokens_of_users() {
    for setting in [Some(DAY), None] {
        let head = TestHead::start_like(|options| options.user_token_lifetime = setting).await;
        assert_eq!(lifetime(&head.admin().await, Role::User, None).await, setting);
    }
}

#[tokio::test]
async fn every_client_may_ask_for_its_own_token_only() {
    let head = TestHead::start().await;
    let ada = head.user("ada").await;
    let own = ada.own_token().await.unwrap();
    assert_eq!((&*own.name, own.role), ("ada", Role::User));
    assert_eq!(own.expires_at, Some(own.created_at + YEAR));
    assert_eq!(ada.tokens().await.unwrap_err().code, RefusalCode::NotAllowed);
    assert_eq!(head.admin().await.own_token().await.unwrap().expires_at, None);
}
