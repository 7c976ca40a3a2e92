//! The order of sources, and errors that name them.

use std::fs;

use std::path::{Path, PathBuf};

use super::*;

/// Settings from these flags, variables and files.
fn settings(
    flags: &[(SettingKey, &str)],
    variables: &[(&str, &str)],
    files: &[(&str, &str)],
) -> Result<Settings, SettingsError> {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        })
        .collect();
    let flags = flags.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
    let variable =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Settings::layered(flags, variable, Path::new("/nonexistent/near.toml"), &paths)
}

fn text(settings: &Settings, key: SettingKey) -> &str {
    settings.find(key).map_or("", |setting| setting.text)
}

#[test]
fn flags_win_over_variables_and_variables_over_files() {
    let files = [
        ("near.toml", "head = 'near:1'\ndevices = 'host:1'"),
        ("far.toml", "head = 'far:1'\njoin = 'far:2'"),
    ];
    let flag = [(SettingKey::Head, "flag:1")];
    let variable = [("COHABIT_HEAD", "variable:1")];

    assert_eq!(text(&settings(&flag, &variable, &files).unwrap(), SettingKey::Head), "flag:1");
    assert_eq!(text(&settings(&[], &variable, &files).unwrap(), SettingKey::Head), "variable:1");
    let of_files = settings(&[], &[], &files).unwrap();
    assert_eq!(text(&of_files, SettingKey::Head), "near:1");
    assert_eq!(text(&of_files, SettingKey::Join), "far:2");
    assert_eq!(text(&of_files, SettingKey::State), "");
}

#[test]
fn an_unknown_key_is_an_error_with_its_line_and_the_closest_key() {
    let message =
        settings(&[], &[], &[("c.toml", "head = 'a:1'\n\norphan_grace = '3m'")]).unwrap_err().message;
    assert!(
        message.ends_with("c.toml:3: there is no setting 'orphan_grace'; did you mean 'orphan-grace'?"),
        "{message}"
    );
}

#[test]
fn bad_toml_and_compound_values_are_errors_with_their_line() {
    let refused = |text| settings(&[], &[], &[("c.toml", text)]).unwrap_err();
    assert!(refused("head = 'a:1'\nhead").message.contains("c.toml:2: "));
    assert!(refused("head = ['a']").message.contains("c.toml:1: head takes a string or a number"));
    assert_eq!(refused("[head]").kind, SettingsErrorKind::Configuration);
}

#[test]
fn the_error_of_a_wrong_value_names_its_source() {
    let settings =
        settings(&[], &[("COHABIT_LOST_AFTER", "300")], &[("c.toml", "\norphan-grace = 5")]).unwrap();
    let of = |key| {
        settings.checked(key, |text| Err::<(), _>(format!("'{text}' has no unit"))).unwrap_err().message
    };
    assert!(of(SettingKey::LostAfter).starts_with("COHABIT_LOST_AFTER: '300' has no unit"));
    let of_file = of(SettingKey::OrphanGrace);
    assert!(of_file.starts_with("orphan-grace in ") && of_file.contains("c.toml:2: '5' has"), "{of_file}");
}

#[test]
fn paths_in_a_file_are_relative_to_it() {
    let settings =
        settings(&[(SettingKey::State, "here")], &[], &[("c.toml", "token-file = 'secrets/token'")]).unwrap();
    assert_eq!(settings.path(SettingKey::State), Some("here".into()));
    let token_file = settings.path(SettingKey::TokenFile).unwrap();
    assert!(token_file.is_absolute() && token_file.ends_with("secrets/token"));
}

#[test]
fn a_missing_file_has_no_settings() {
    let none = Settings::layered(
        RawSettings::new(),
        |_| None,
        Path::new("/nonexistent/near.toml"),
        &["/nonexistent/c.toml".into()],
    )
    .unwrap();
    assert!(none.find(SettingKey::Head).is_none());
}

#[test]
fn a_near_file_of_another_user_is_ignored() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can give a file to another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("cohabit.toml"), folder.path().join("link.toml"));
    fs::write(&file, "head = 'evil:1'").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let head_of = |near: &Path| {
        let settings = Settings::layered(RawSettings::new(), |_| None, near, &[]).unwrap();
        text(&settings, SettingKey::Head).to_owned()
    };
    assert_eq!(head_of(&file), "evil:1");
    std::os::unix::fs::lchown(&link, Some(61_200), None).unwrap();
    assert_eq!(head_of(&link), "", "the link is another user's");
    std::os::unix::fs::chown(&file, Some(61_200), None).unwrap();
    assert_eq!(head_of(&file), "");
    let warnings = Settings::layered(RawSettings::new(), |_| None, &file, &[]).unwrap().warnings().to_vec();
    assert!(warnings[0].contains("belongs to another user (uid 61200)"), "{warnings:?}");
}
