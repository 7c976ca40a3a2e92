//! Channels: where messages go, and with which secrets.

use std::net::IpAddr;
use std::path::Path;

use cohabit_client::types::check_channel_name;
use lettre::message::Mailbox;
use ureq::http::Uri;

use super::known_names::known_names;
use super::table::{ConfigError, TableReader};
use cohabit_settings::FileSecret;

/// The keys of a channel.
pub(super) const KEYS: &[&str] = &[
    "name",
    "kind",
    "url-file",
    "secret-file",
    "token-file",
    "ca-file",
    "from",
    "address",
    "plain",
    "most-per-minute",
];

/// How many messages a minute one recipient gets at most, unless the operator says otherwise.
const MOST_PER_MINUTE: usize = 20;
/// The place of the user's name in an address.
const USER: &str = "{user}";

/// A channel.
#[derive(Debug, Clone)]
pub(crate) struct ChannelConfig {
    pub(crate) name: String,
    pub(crate) kind: ChannelKind,
    /// Where it is reached; may itself be a secret.
    pub(crate) url: FileSecret,
    /// Certificates that it is trusted by, besides those of this machine, as PEM.
    pub(crate) authorities: Option<Vec<u8>>,
    /// Whom it reaches.
    pub(crate) address: ChannelAddress,
    /// How many messages a minute one recipient gets at most; the others come as one.
    pub(crate) most_per_minute: usize,
}

/// The form of a channel.
#[derive(Debug, Clone)]
pub(crate) enum ChannelKind {
    /// JSON, with a signature if there is a key for it.
    Webhook(Option<FileSecret>),
    Slack,
    Mattermost,
    Discord,
    /// With an access token, if the server wants one.
    Ntfy(Option<FileSecret>),
    Smtp {
        /// The sender.
        from: Box<Mailbox>,
    },
}

/// Whom a channel reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChannelAddress {
    /// All who read there.
    Everybody,
    /// This one.
    Fixed(String),
    /// One that is made from the user's name.
    OfUser(String),
}

impl ChannelKind {
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            ChannelKind::Webhook(_) => "webhook",
            ChannelKind::Slack => "slack",
            ChannelKind::Mattermost => "mattermost",
            ChannelKind::Discord => "discord",
            ChannelKind::Ntfy(_) => "ntfy",
            ChannelKind::Smtp { .. } => "smtp",
        }
    }
}

impl ChannelConfig {
    pub(super) fn read(table: &TableReader<'_>, folder: &Path) -> Result<ChannelConfig, ConfigError> {
        let name = table.required_text("name")?;
        check_channel_name(&name).map_err(|why| table.wrong("name", why))?;
        let kind = kind(table, folder)?;
        let url = secret(table, "url-file", folder)?.ok_or_else(|| {
            table.wrong("url-file", "url-file is missing: it names a file with the address")
        })?;
        check_url(&url, &kind, table.flag("plain")?).map_err(|why| table.wrong("url-file", why))?;
        let most = table.number("most-per-minute", 1, 600)?.unwrap_or(MOST_PER_MINUTE);
        let authorities = authorities(table, folder)?;
        let address = address(table, &kind)?;
        if matches!(kind, ChannelKind::Ntfy(_))
            && address == ChannelAddress::Everybody
            && topic_of(&url).is_none()
        {
            let what =
                "the address in this file has no topic: write https://HOST/TOPIC, or add address = \"TOPIC\"";
            return Err(table.wrong("url-file", what));
        }
        Ok(ChannelConfig { name, kind, url, authorities, address, most_per_minute: most })
    }

    /// Whom a message about a job of this user reaches; none where the address needs a user and there is
    /// none, or one whose name could not be a part of an address.
    pub(crate) fn recipient(&self, user: Option<&str>) -> Option<String> {
        match (&self.address, user) {
            (ChannelAddress::Everybody, _) => Some(String::new()),
            (ChannelAddress::Fixed(address), _) => Some(address.clone()),
            (ChannelAddress::OfUser(pattern), Some(user)) if is_plain(user) => {
                Some(pattern.replace(USER, user))
            }
            (ChannelAddress::OfUser(_), _) => None,
        }
    }
}

/// Whether a user's name can stand in any address.
fn is_plain(user: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | '+');
    (1..=64).contains(&user.len()) && user.chars().all(plain) && !user.starts_with(['.', '-'])
}

fn kind(table: &TableReader<'_>, folder: &Path) -> Result<ChannelKind, ConfigError> {
    const KINDS: [&str; 6] = ["webhook", "slack", "mattermost", "discord", "ntfy", "smtp"];
    let word = table.required_text("kind")?;
    let secrets = [("secret-file", "webhook"), ("token-file", "ntfy"), ("from", "smtp")];
    if let Some((key, of)) =
        secrets.iter().find(|(key, of)| word != *of && matches!(table.text(key), Ok(Some(_))))
    {
        return Err(table.wrong(key, format!("{key} is for channels of the kind '{of}': remove it")));
    }
    Ok(match word.as_str() {
        "webhook" => ChannelKind::Webhook(secret(table, "secret-file", folder)?),
        "slack" => ChannelKind::Slack,
        "mattermost" => ChannelKind::Mattermost,
        "discord" => ChannelKind::Discord,
        "ntfy" => ChannelKind::Ntfy(secret(table, "token-file", folder)?),
        "smtp" => {
            let from = table.required_text("from")?.parse::<Mailbox>();
            let from = from.map_err(|error| table.wrong("from", format!("from is no address: {error}")))?;
            ChannelKind::Smtp { from: Box::new(from) }
        }
        _ => {
            let known = known_names(&word, KINDS.into_iter());
            return Err(table.wrong("kind", format!("there is no kind '{word}': {known}")));
        }
    })
}

fn secret(table: &TableReader<'_>, key: &str, folder: &Path) -> Result<Option<FileSecret>, ConfigError> {
    let path = table.path(key, folder)?;
    path.map(|path| FileSecret::read(&path).map_err(|why| table.wrong(key, why))).transpose()
}

fn authorities(table: &TableReader<'_>, folder: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    let Some(path) = table.path("ca-file", folder)? else { return Ok(None) };
    let shown = path.display();
    let pem = std::fs::read(&path);
    let pem = pem.map_err(|error| table.wrong("ca-file", format!("cannot read {shown}: {error}")))?;
    let is_certificate = |item| matches!(item, Ok(ureq::tls::PemItem::Certificate(_)));
    let is_usable = ureq::tls::parse_pem(&pem).next().is_some_and(is_certificate);
    let unusable = || table.wrong("ca-file", format!("{shown} has no certificate in the PEM form"));
    is_usable.then_some(Some(pem)).ok_or_else(unusable)
}

fn address(table: &TableReader<'_>, kind: &ChannelKind) -> Result<ChannelAddress, ConfigError> {
    let wrong = |why: String| Err(table.wrong("address", why));
    let Some(text) = table.text("address")? else {
        return match kind {
            ChannelKind::Smtp { .. } => wrong("address is missing: add address = \"{user}@HOST\"".to_owned()),
            ChannelKind::Webhook(_)
            | ChannelKind::Slack
            | ChannelKind::Mattermost
            | ChannelKind::Discord
            | ChannelKind::Ntfy(_) => Ok(ChannelAddress::Everybody),
        };
    };
    match kind {
        ChannelKind::Smtp { .. } if text.replace(USER, "ada").parse::<Mailbox>().is_err() => {
            return wrong(format!("'{text}' is no address of mail: write for example {{user}}@lab.example"));
        }
        ChannelKind::Ntfy(_) if !is_plain(&text.replace(USER, "ada")) => {
            return wrong(format!("'{text}' is no topic of ntfy: use ASCII letters, digits, '-' and '_'"));
        }
        ChannelKind::Webhook(_) | ChannelKind::Slack | ChannelKind::Discord => {
            return wrong(format!("a channel of the kind '{}' has no address besides its url", kind.word()));
        }
        ChannelKind::Smtp { .. } | ChannelKind::Ntfy(_) | ChannelKind::Mattermost => {}
    }
    Ok(if text.contains(USER) { ChannelAddress::OfUser(text) } else { ChannelAddress::Fixed(text) })
}

/// Refuses what cannot be reached, or only without encryption by other machines. Errors do not quote the
/// address, which may be a secret.
fn check_url(url: &FileSecret, kind: &ChannelKind, plain: bool) -> Result<(), String> {
    let is_mail = matches!(kind, ChannelKind::Smtp { .. });
    let examples = if is_mail { "smtps://USER:PASSWORD@HOST" } else { "https://HOST/PATH" };
    let wrong = |what: &str| Err(format!("the address in this file {what}: write {examples}"));
    let Ok(uri) = url.reveal().parse::<Uri>() else { return wrong("is none") };
    let Some(host) = uri.host().filter(|host| !host.is_empty()) else { return wrong("has no host") };
    if uri.authority().is_some_and(|authority| authority.as_str().ends_with(':')) {
        return wrong("has an empty port");
    }
    let encrypted = match (uri.scheme_str(), is_mail) {
        (Some("https"), false) | (Some("smtps"), true) => true,
        (Some("http"), false) => false,
        (Some("smtp"), true) => match uri.query() {
            None => false,
            Some("tls=required") => true,
            Some(_) => return wrong("has parameters other than ?tls=required"),
        },
        _ => return wrong("is of another kind"),
    };
    match encrypted || plain || is_local(host) {
        true => Ok(()),
        false => Err(format!(
            "messages to {host} would travel without encryption: write {examples}, or add plain = true to this \
             channel if the network is trusted"
        )),
    }
}

/// The topic at the end of an address of ntfy.
pub(crate) fn topic_of(url: &FileSecret) -> Option<String> {
    let uri: Uri = url.reveal().parse().ok()?;
    uri.path().trim_matches('/').rsplit('/').next().filter(|topic| !topic.is_empty()).map(str::to_owned)
}

fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
