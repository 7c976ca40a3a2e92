//! Where heads and tokens are found, in a test environment and directories of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cohabit_settings::SettingKey;

use tempfile::TempDir;

use super::*;

const TEXT: &str = "cohabit1.0000000000000000000000000000000000000000000000000000000000000001.\
                    0000000000000000000000000000000000000000000000000000000000000002";

/// The state directory of a head at this address.
fn state_of(address: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("address"), format!("{address}\n")).unwrap();
    write_token(&folder.path().join("admin.token"), TEXT);
    folder
}

fn write_token(file: &Path, text: &str) {
    fs::write(file, format!("{text}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// What these settings give, as if they were flags.
fn found(written: &[(SettingKey, &Path)]) -> Result<ConnectOptions, Error> {
    let written = written.iter().map(|(key, path)| (*key, path.to_str().unwrap().to_owned()));
    ConnectOptions::from_settings(&Settings::of_flags(written.collect()))
}

fn trouble(result: Result<ConnectOptions, Error>) -> String {
    match result {
        Err(Error::Configuration(message)) => message,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("nothing was wrong"),
    }
}

#[test]
fn a_state_directory_gives_address_and_token() {
    let state = state_of("127.0.0.1:4711");
    for connect in [ConnectOptions::local(state.path()), found(&[(SettingKey::State, state.path())])] {
        let connect = connect.unwrap();
        assert_eq!((connect.head.as_str(), connect.token.expose().as_str()), ("127.0.0.1:4711", TEXT));
    }
}

#[test]
fn an_address_and_a_token_file_take_precedence_over_the_state_directory() {
    let state = state_of("127.0.0.1:4711");
    let other = TEXT.replace("02", "03");
    let file = state.path().join("mine.token");
    write_token(&file, &other);
    let head = Path::new("gpu-head:7070");
    let connect =
        found(&[(SettingKey::State, state.path()), (SettingKey::Head, head), (SettingKey::TokenFile, &file)]);
    let connect = connect.unwrap();
    assert_eq!((connect.head.as_str(), connect.token.expose()), ("gpu-head:7070", other));
}

#[test]
fn without_a_head_the_message_names_the_places_searched_and_the_remedy() {
    let empty = tempfile::tempdir().unwrap();
    let message = trouble(found(&[(SettingKey::State, empty.path())]));
    assert!(message.contains(&empty.path().join("address").display().to_string()), "{message}");
    assert!(message.contains("COHABIT_HEAD=HOST:PORT"), "{message}");
}

#[test]
fn a_token_that_others_may_read_is_refused_with_the_command_that_helps() {
    let state = state_of("127.0.0.1:4711");
    let file = state.path().join("admin.token");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let message = trouble(ConnectOptions::local(state.path()));
    assert!(message.contains("chmod 600"), "{message}");
    assert!(!message.contains("0002"), "{message}");
}
