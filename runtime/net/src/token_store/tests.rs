//! What the store accepts, what it keeps, and what it never shows.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

const NOW: Time = Time::from_micros(1_000_000);

fn path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("tokens.json")
}

fn open(folder: &tempfile::TempDir) -> TokenStore {
    TokenStore::open(&path(folder), Fingerprint::of(b"ca")).unwrap()
}

#[test]
fn a_token_is_verified_as_its_owner_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (ada, root) = (
        store.create("ada", Role::User, None, NOW).unwrap(),
        store.create("root", Role::Admin, None, NOW).unwrap(),
    );
    for store in [store, open(&folder)] {
        assert_eq!(store.verify(&ada, NOW), Ok(Principal::new("ada", Role::User)));
        assert_eq!(store.verify(&root, NOW), Ok(Principal::new("root", Role::Admin)));
        assert!(store.is_valid("ada", NOW) && !store.is_valid("bea", NOW));
        let names: Vec<_> = store.list().into_iter().map(|record| record.name).collect();
        assert_eq!(names, ["ada", "root"]);
    }
}

#[test]
fn neither_the_file_nor_debug_holds_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let token = store.create("ada", Role::User, None, NOW).unwrap();
    let text = token.expose();
    let secret = text.rsplit_once('.').unwrap().1;
    let stored = fs::read_to_string(path(&folder)).unwrap();
    assert!(stored.contains("\"ada\""));
    for shown in [stored, format!("{token:?} {store:?} {:?}", store.list())] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn a_token_is_good_until_it_expires() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let token = store.create("ada", Role::User, Some(Span::from_secs(60)), NOW).unwrap();
    assert!(store.verify(&token, NOW + Span::from_secs(59)).is_ok());
    assert_eq!(store.verify(&token, NOW + Span::from_secs(60)), Err(VerifyError::Expired));
    assert!(!store.is_valid("ada", NOW + Span::from_secs(60)));
    let for_ever = store.create("bea", Role::User, Some(Span::from_micros(u64::MAX)), NOW).unwrap();
    assert!(store.verify(&for_ever, NOW).is_ok());
}

#[test]
fn a_revoked_token_is_unknown_and_its_name_is_free_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (old, other) = (
        store.create("ada", Role::User, None, NOW).unwrap(),
        store.create("bea", Role::User, None, NOW).unwrap(),
    );
    store.revoke("ada").unwrap();
    let new = store.create("ada", Role::Admin, None, NOW).unwrap();
    for store in [store, open(&folder)] {
        assert_eq!(store.verify(&old, NOW), Err(VerifyError::Unknown));
        assert_eq!(store.verify(&new, NOW).map(|by| by.role), Ok(Role::Admin));
        assert!(store.verify(&other, NOW).is_ok());
    }
}

#[test]
fn names_are_unique_short_and_plain() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    store.create("ada", Role::User, None, NOW).unwrap();
    let taken = store.create("ada", Role::Worker, None, NOW);
    assert!(matches!(taken, Err(TokenStoreError::NameTaken(_))));
    for name in ["", "two words", "a\nb", "\u{1b}[2J", "é", &"x".repeat(65)] {
        let refused = store.create(name, Role::User, None, NOW);
        assert!(matches!(refused, Err(TokenStoreError::BadName(_))), "{name}");
    }
    assert!(matches!(store.revoke("bea"), Err(TokenStoreError::Unknown(_))));
    assert_eq!(store.list().len(), 1);
}

#[test]
fn a_token_has_the_account_of_its_name_or_another_but_root_is_for_admins() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let create = |account: Option<&str>, name: &str, role| {
        let account = account.map(str::to_owned);
        let new = NewToken { name: name.into(), role, account, node: None, expires_in: None };
        store.create_for(&new, NOW)
    };
    for (account, name, expected) in
        [(None, "ada", None), (Some("bea"), "bea", None), (Some("c"), "eve", Some("c"))]
    {
        let token = create(account, name, Role::User).unwrap();
        let by = open(&folder).verify(&token, NOW).unwrap();
        assert_eq!((by.user.as_str(), by.account.as_deref()), (name, expected));
    }
    let runs_as = |name: &str| {
        store.list().into_iter().find(|it| it.name == name).unwrap().runs_as().map(str::to_owned)
    };
    assert_eq!((runs_as("ada"), runs_as("eve")), (Some("ada".into()), Some("c".into())));
    for (account, name) in [(None, "root"), (Some("root"), "mallory")] {
        assert!(matches!(create(account, name, Role::User), Err(TokenStoreError::Root(Role::User))));
    }
    assert!(create(Some("root"), "ops", Role::Admin).is_ok());
    assert!(matches!(create(Some("no such"), "f", Role::User), Err(TokenStoreError::BadAccount(_))));
}

#[test]
fn tokens_of_earlier_versions_have_the_accounts_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let token = open(&folder).create("ada", Role::User, None, NOW).unwrap();
    let text = fs::read_to_string(path(&folder)).unwrap();
    let earlier: String = text.lines().filter(|line| !line.contains("\"account\"")).collect();
    assert_ne!(text.replace('\n', ""), earlier);
    fs::write(path(&folder), earlier).unwrap();
    assert_eq!(open(&folder).verify(&token, NOW), Ok(Principal::new("ada", Role::User)));
}

#[test]
fn the_file_is_private_and_replaced_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    store.create("ada", Role::User, None, NOW).unwrap();
    let before = fs::metadata(path(&folder)).unwrap();
    store.create("bea", Role::User, None, NOW).unwrap();
    let after = fs::metadata(path(&folder)).unwrap();
    assert_eq!(after.mode() & 0o777, 0o600);
    assert_ne!(before.ino(), after.ino(), "a new file took its place");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_change_that_cannot_be_written_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let token = store.create("ada", Role::User, None, NOW).unwrap();
    // A directory in the place of the fresh file stops the owner and the superuser alike.
    fs::create_dir(folder.path().join("tokens.json.new")).unwrap();
    assert!(matches!(store.revoke("ada"), Err(TokenStoreError::File(StateError::Write { .. }))));
    assert!(store.create("bea", Role::User, None, NOW).is_err());
    assert!(store.verify(&token, NOW).is_ok());
    assert_eq!(store.list().len(), 1);
}

#[test]
fn a_corrupt_exposed_or_later_file_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let refused = || TokenStore::open(&path(&folder), Fingerprint::of(b"ca")).unwrap_err().to_string();
    for (content, reason) in [
        ("{ half", "restore it from a backup"),
        (r#"{"schema": 1, "tokens": [{"sha256": "xyz"}]}"#, "restore it from a backup"),
        (r#"{"schema": 0, "tokens": []}"#, "restore it from a backup"),
        (
            r#"{"schema": 9, "tokens": {}}"#,
            "format version 9, and this version of Cohabit reads 1 to 2: start the newer",
        ),
    ] {
        private_file::replace(&path(&folder), content.as_bytes()).unwrap();
        let error = refused();
        assert!(error.contains(reason) && error.contains("tokens.json"), "{error}");
        assert_eq!(fs::read_to_string(path(&folder)).unwrap(), content);
    }
    fs::set_permissions(path(&folder), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused().contains("chmod 600"));
}

#[test]
fn tokens_of_all_releases_are_read_and_written_alike() {
    let ada = TokenRecord {
        name: "ada".into(),
        role: Role::User,
        account: Some("lovelace".into()),
        node: None,
        created_at: Time::from_micros(1_000_000),
        expires_at: Some(Time::from_micros(61_000_000)),
    };
    for (golden, other, node) in [
        (include_str!("../../golden/tokens-1.json"), "root", None),
        (include_str!("../../golden/tokens-2.json"), "w1", Some("w1")),
    ] {
        let golden = golden.trim_end();
        let folder = tempfile::tempdir().unwrap();
        private_file::replace(&path(&folder), golden.as_bytes()).unwrap();
        let store = open(&folder);
        let [first, second] = &store.list()[..] else { panic!("it holds two tokens") };
        assert_eq!((first, second.name.as_str(), second.node.as_deref()), (&ada, other, node));
        store.create("bea", Role::User, None, NOW).unwrap();
        store.revoke("bea").unwrap();
        assert_eq!(fs::read_to_string(path(&folder)).unwrap(), golden);
    }
}

#[test]
fn only_a_worker_token_is_for_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let create = |role, node: &str| {
        let new =
            NewToken { name: "w".into(), role, account: None, node: Some(node.into()), expires_in: None };
        store.create_for(&new, NOW).map(drop)
    };
    for role in [Role::User, Role::Admin] {
        assert!(matches!(create(role, "w1"), Err(TokenStoreError::NodeOfOtherRole(_))));
    }
    assert!(matches!(create(Role::Worker, "w 1"), Err(TokenStoreError::BadNode(_))));
    create(Role::Worker, "w1").unwrap();
    assert_eq!(open(&folder).list()[0].node.as_deref(), Some("w1"));
}

#[tokio::test]
async fn waiting_for_the_end_of_a_token_ends_with_its_revocation() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let (ada, bea) = (
        store.create("ada", Role::User, None, NOW).unwrap(),
        store.create("bea", Role::User, None, NOW).unwrap(),
    );
    let grant = |token: &Token| store.admit(token.secret(), NOW).unwrap();
    let (ada, bea) = (grant(&ada), grant(&bea));
    let revoke = async { store.revoke("ada").unwrap() };
    let (end, ()) = tokio::join!(store.ended(&ada), revoke);
    assert_eq!(end, TokenEnd::Revoked);
    assert_eq!(store.ended(&ada).await, TokenEnd::Revoked);
    assert!(futures::poll!(std::pin::pin!(store.ended(&bea))).is_pending());
}

#[test]
fn errors_become_refusals_with_the_same_message() {
    let refusal = Refusal::from(TokenStoreError::Unknown("ada".into()));
    assert_eq!(refusal.code, RefusalCode::NotFound);
    assert!(refusal.message.contains("no token named 'ada'"), "{refusal}");
}

#[test]
fn a_viewer_has_no_account_and_no_node() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let new = |account: Option<&str>, node: Option<&str>| NewToken {
        name: "wall".into(),
        role: Role::Viewer,
        account: account.map(Into::into),
        node: node.map(Into::into),
        expires_in: None,
    };
    let refused = store.create_for(&new(Some("ada"), None), NOW);
    assert!(matches!(refused, Err(TokenStoreError::AccountOfViewer)), "{refused:?}");
    let refused = store.create_for(&new(None, Some("w1")), NOW);
    assert!(matches!(refused, Err(TokenStoreError::NodeOfOtherRole(Role::Viewer))), "{refused:?}");
    let token = store.create_for(&new(None, None), NOW).unwrap();
    assert_eq!(open(&folder).verify(&token, NOW), Ok(Principal::new("wall", Role::Viewer)), "from the file");
    assert_eq!(store.list()[0].runs_as(), None);
}
