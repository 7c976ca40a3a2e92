//! What a configuration may say, and what is wrong with others.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;

/// A directory with this configuration, and files with secrets.
struct Setup {
    folder: TempDir,
}

impl Setup {
    fn new() -> Setup {
        let setup = Setup { folder: tempfile::tempdir().unwrap() };
        for (name, text) in [
            ("chat", "https://hooks.example/T0/B0/secret\n"),
            ("smtp", "smtps://cohabit:pass@mail.lab.example"),
            ("ntfy", "https://ntfy.lab.example/cohabit"),
            ("ntfy-root", "https://ntfy.lab.example"),
            ("plain", "http://hooks.example/x"),
            ("local", "http://127.0.0.1:8080/x"),
            ("starttls", "smtp://mail.lab.example?tls=required"),
            ("opportunistic", "smtp://mail.lab.example?tls=opportunistic"),
            ("key", "a key"),
            ("portless", "http://127.0.0.1:/x"),
            ("empty", "\n"),
            ("lines", "https://a.example\nhttps://b.example"),
            ("nonsense", "not an address"),
        ] {
            setup.write(name, text, 0o600);
        }
        setup.write("open", "https://hooks.example/x", 0o640);
        setup
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn read(&self, text: &str) -> Result<NotifyConfig, String> {
        self.write("notify.toml", text, 0o644);
        NotifyConfig::read(&self.folder.path().join("notify.toml")).map_err(|error| error.to_string())
    }

    /// A configuration with one channel of these keys.
    fn channel(&self, keys: &str) -> Result<NotifyConfig, String> {
        self.read(&format!("state = \"s\"\n[[channel]]\n{keys}\n"))
    }
}

const CHAT: &str = "[[channel]]\nname = \"chat\"\nkind = \"slack\"\nurl-file = \"chat\"\n";
const MAIL: &str = "[[channel]]\nname = \"mail\"\nkind = \"smtp\"\nurl-file = \"smtp\"\n\
                    from = \"Cohabit <c@lab.example>\"\naddress = \"{user}@lab.example\"\n";

#[test]
fn channels_and_routes_are_read() {
    let setup = Setup::new();
    let text = format!(
        "state = \"state/notify.json\"\ndefault = \"mail\"\n{CHAT}{MAIL}\
         [[route]]\nevents = [\"fail\", \"node-lost\", \"head-problem\"]\nto = [\"chat\"]\n\
         [[route]]\nevents = \"stall\"\nto = \"mail\"\nusers = [\"ada\"]\n"
    );
    let config = setup.read(&text).unwrap();
    assert_eq!(config.state, setup.folder.path().join("state/notify.json"));
    assert_eq!((config.default.as_str(), config.channels.len(), config.routes.len()), ("mail", 2, 2));
    assert_eq!(config.channel("chat").unwrap().url.reveal(), "https://hooks.example/T0/B0/secret");
    let mail = config.channel("mail").unwrap();
    assert_eq!(mail.recipient(Some("ada")).as_deref(), Some("ada@lab.example"));
    assert_eq!(mail.recipient(None), None);
    for hostile in ["a b", "ada\r\nBcc: x", "ada@evil.example,x", "", ".a", "-f", &"x".repeat(65)] {
        assert_eq!(mail.recipient(Some(hostile)), None, "{hostile:?}");
    }
    let expected = "2 channels, 2 routes\nchat: slack, 1 routes\nmail: smtp, 1 routes, the default channel\n";
    assert_eq!(config.summary(), expected);
    assert!(!format!("{config:?}").contains("pass@"), "secrets are hidden");
    assert!(config.channel("chatt").unwrap_err().to_string().contains("did you mean 'chat'?"));
}

#[test]
fn an_unknown_key_or_name_is_refused_with_its_line_and_the_nearest_one() {
    let setup = Setup::new();
    for (text, part) in [
        (
            "state = \"s\"\nchanel = 1\n".to_owned(),
            ":2: there is no key 'chanel' here: did you mean 'channel'?",
        ),
        (
            format!("state = \"s\"\n{CHAT}adress = \"x\"\n"),
            ":6: there is no key 'adress' here: did you mean 'address'?",
        ),
        (
            format!("state = \"s\"\n{CHAT}[[route]]\nevent = \"fail\"\n"),
            ":7: there is no key 'event' here: did you mean 'events'?",
        ),
        (
            format!("state = \"s\"\n{CHAT}[[route]]\nevents = \"failed\"\nto = \"chat\"\n"),
            ":7: 'failed' is not an event: did you mean 'fail'?",
        ),
        (
            format!("state = \"s\"\n{CHAT}[[route]]\nevents = \"fail\"\nto = \"chta\"\n"),
            ":8: there is no channel 'chta': did you mean 'chat'?",
        ),
        (format!("state = \"s\"\n{CHAT}[[route]]\nto = \"chat\"\n"), "events is missing"),
        (format!("state = \"s\"\n{CHAT}[[route]]\nevents = []\nto = \"chat\"\n"), "events takes a list"),
        (format!("state = \"s\"\ndefault = \"x\"\n{CHAT}"), ":2: there is no channel 'x'"),
        (format!("state = \"s\"\n{CHAT}{MAIL}"), "no default one"),
        (format!("state = \"s\"\n{CHAT}{CHAT}"), "two channels 'chat'"),
        (CHAT.to_owned(), "state is missing"),
        ("state = \"s\"\n".to_owned(), "there is no channel: add a [[channel]]"),
        ("state = \"s\"\n[channel]\nname = \"x\"\n".to_owned(), "write [[channel]] with two brackets"),
        ("state = [\n".to_owned(), "notify.toml:"),
        (
            format!("state = \"s\"\n{MAIL}[[route]]\nevents = \"node-lost\"\nto = \"mail\"\n"),
            "happens to no job",
        ),
    ] {
        let refusal = setup.read(&text).unwrap_err();
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn what_is_wrong_with_a_channel_is_said() {
    let setup = Setup::new();
    for (keys, part) in [
        ("name = \"a b\"\nkind = \"slack\"\nurl-file = \"chat\"", "cannot be the name of a channel"),
        ("name = \"x\"\nkind = \"slak\"\nurl-file = \"chat\"", "did you mean 'slack'?"),
        ("name = \"x\"\nkind = \"slack\"", "url-file is missing"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"none\"", "cannot read"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"open\"", "other users can read"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"empty\"", "has to hold one line"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"lines\"", "has to hold one line"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"nonsense\"", "the address in this file is none"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"portless\"", "has an empty port"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"smtp\"", "is of another kind: write https://"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"plain\"", "without encryption"),
        (
            "name = \"x\"\nkind = \"slack\"\nurl-file = \"chat\"\naddress = \"a\"",
            "no address besides its url",
        ),
        (
            "name = \"x\"\nkind = \"slack\"\nurl-file = \"chat\"\nsecret-file = \"key\"",
            "of the kind 'webhook'",
        ),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"chat\"\nmost-per-minute = 0", "from 1 to 600"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"chat\"\nplain = \"yes\"", "takes true or false"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = \"chat\"\nca-file = \"key\"", "no certificate"),
        ("name = \"x\"\nkind = \"slack\"\nurl-file = [\"chat\"]", "takes a text"),
        ("name = \"x\"\nkind = \"ntfy\"\nurl-file = \"ntfy-root\"", "has no topic"),
        ("name = \"x\"\nkind = \"ntfy\"\nurl-file = \"ntfy\"\naddress = \"a/b\"", "no topic of ntfy"),
        ("name = \"x\"\nkind = \"smtp\"\nurl-file = \"smtp\"\naddress = \"a@b.example\"", "from is missing"),
        ("name = \"x\"\nkind = \"smtp\"\nurl-file = \"smtp\"\nfrom = \"a@b.example\"", "address is missing"),
        (
            "name = \"x\"\nkind = \"smtp\"\nurl-file = \"smtp\"\nfrom = \"nobody\"\naddress = \"a@b.example\"",
            "from is no",
        ),
        (
            "name = \"x\"\nkind = \"smtp\"\nurl-file = \"smtp\"\nfrom = \"a@b.example\"\naddress = \"a\"",
            "no address of mail",
        ),
        (
            "name = \"x\"\nkind = \"smtp\"\nurl-file = \"opportunistic\"\nfrom = \"a@b.example\"\naddress = \"a@b.example\"",
            "other than ?tls=required",
        ),
    ] {
        let refusal = setup.channel(keys).unwrap_err();
        assert!(refusal.contains(part), "{keys}: {refusal}");
        assert!(!refusal.contains("hooks.example/"), "no address is quoted: {refusal}");
    }
}

#[test]
fn what_is_encrypted_or_stays_on_this_machine_or_is_allowed_is_taken() {
    let setup = Setup::new();
    for keys in [
        "name = \"x\"\nkind = \"webhook\"\nurl-file = \"local\"\nsecret-file = \"key\"",
        "name = \"x\"\nkind = \"webhook\"\nurl-file = \"plain\"\nplain = true",
        "name = \"x\"\nkind = \"ntfy\"\nurl-file = \"ntfy\"\ntoken-file = \"key\"",
        "name = \"x\"\nkind = \"ntfy\"\nurl-file = \"ntfy-root\"\naddress = \"cohabit-{user}\"",
        "name = \"x\"\nkind = \"mattermost\"\nurl-file = \"chat\"\naddress = \"@{user}\"",
        "name = \"x\"\nkind = \"smtp\"\nurl-file = \"starttls\"\nfrom = \"a@b.example\"\naddress = \"a@b.example\"",
    ] {
        setup.channel(keys).unwrap();
    }
}

#[test]
fn a_configuration_that_others_may_change_is_refused() {
    let setup = Setup::new();
    setup.write("notify.toml", &format!("state = \"s\"\n{CHAT}"), 0o664);
    let refusal = NotifyConfig::read(&setup.folder.path().join("notify.toml")).unwrap_err().to_string();
    assert!(refusal.contains("mode 664") && refusal.contains("chmod go-w"), "{refusal}");
}

/// The example that admins copy.
#[test]
fn the_example_of_the_operations_guide_is_taken() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/OPERATIONS.md");
    let guide = fs::read_to_string(guide).unwrap();
    let begin = guide.find("    state = \"/var/lib/cohabit-notify/state.json\"").unwrap();
    let lines = guide[begin..].lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let example: Vec<&str> = lines.map(str::trim_start).collect();
    let setup = Setup::new();
    setup.write("smtp.url", "smtps://cohabit:pass@mail.lab.example", 0o600);
    setup.write("slack.url", "https://hooks.example/T0/B0/secret", 0o600);
    let folder = setup.folder.path().display().to_string();
    let config = setup.read(&example.join("\n").replace("/etc/cohabit", &folder)).unwrap();
    assert_eq!((config.default.as_str(), config.channels.len(), config.routes.len()), ("mail", 2, 2));
}
