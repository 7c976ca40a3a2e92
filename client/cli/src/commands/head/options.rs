//! The head's options: from flags and settings to what the head takes, checked once.

use std::net::{SocketAddr, ToSocketAddrs};

use cohabit_head::{Basis, Config, HeadOptions};

use crate::arguments::HeadStartArguments;
use crate::config::{Key, Settings, Written};
use crate::connect::{path_flag, state_folder};
use crate::daemon;
use crate::failure::Failure;
use crate::values;

/// The flags, as settings.
pub(in crate::commands) fn flags(arguments: &HeadStartArguments) -> Result<Written, Failure> {
    let mut written = daemon::logging_flags(&arguments.logging);
    written.extend(path_flag(Key::State, arguments.state.as_deref())?);
    let texts = [
        (Key::Listen, &arguments.listen),
        (Key::Policy, &arguments.policy),
        (Key::Interference, &arguments.interference),
        (Key::MaxSlowdown, &arguments.max_slowdown),
        (Key::LostAfter, &arguments.lost_after),
    ];
    written.extend(texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))));
    Ok(written)
}

/// The settings as the head takes them.
pub(in crate::commands) fn options(settings: &Settings) -> Result<HeadOptions, Failure> {
    let usual = HeadOptions::new(state_folder(settings)?);
    Ok(HeadOptions {
        listen: settings.checked(Key::Listen, address)?.unwrap_or(usual.listen),
        policy: settings.find(Key::Policy).map_or(usual.policy, |setting| setting.text.to_owned()),
        interference: interference(settings)?.unwrap_or(usual.interference),
        max_slowdown: settings.checked(Key::MaxSlowdown, str::parse)?.unwrap_or(usual.max_slowdown),
        config: config(settings, usual.config)?,
        history_retention: settings
            .checked(Key::HistoryRetention, values::span)?
            .unwrap_or(usual.history_retention),
        ..usual
    })
}

/// What the head goes by; a file is looked for beside the one that names it.
fn interference(settings: &Settings) -> Result<Option<Basis>, Failure> {
    let Some(setting) = settings.find(Key::Interference) else { return Ok(None) };
    let basis = setting.check(str::parse::<Basis>)?;
    Ok(Some(basis.within(setting.folder())))
}

fn config(settings: &Settings, usual: Config) -> Result<Config, Failure> {
    Ok(Config {
        lost_after: settings.checked(Key::LostAfter, values::span)?.unwrap_or(usual.lost_after),
        retention: settings.checked(Key::Retention, values::span)?.unwrap_or(usual.retention),
        node_failures: settings.checked(Key::NodeFailures, str::parse)?.unwrap_or(usual.node_failures),
    })
}

/// An address, or a name that has one.
fn address(text: &str) -> Result<SocketAddr, String> {
    let refuse = || format!("'{text}' is no address to listen on: write it like 0.0.0.0:7070 or 127.0.0.1:0");
    text.to_socket_addrs().map_err(|_| refuse())?.next().ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use cohabit_client::proto::{Slowdown, Span};

    use super::*;
    use crate::failure::Trouble;

    fn options_of(written: &[(Key, &str)]) -> Result<HeadOptions, Failure> {
        let mut written: Written = written.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        written.entry(Key::State).or_insert_with(|| "/state".to_owned());
        options(&Settings::with_flags(written)?)
    }

    #[test]
    fn settings_become_options() {
        let options =
            options_of(&[(Key::Listen, "127.0.0.1:0"), (Key::LostAfter, "10m"), (Key::NodeFailures, "2")])
                .unwrap();
        let sharing =
            options_of(&[(Key::Interference, "table:pairs.csv"), (Key::MaxSlowdown, "1.5")]).unwrap();
        assert_eq!(sharing.interference, Basis::Table("pairs.csv".into()));
        assert_eq!(sharing.max_slowdown, Slowdown(1_500));
        assert_eq!(options.listen, "127.0.0.1:0".parse().unwrap());
        assert_eq!(options.config.lost_after, Span::from_secs(600));
        assert_eq!(options.config.node_failures, 2);
        assert_eq!(options.state_dir, std::path::Path::new("/state"));
    }

    #[test]
    fn wrong_values_are_usage_errors_that_name_the_flag() {
        for (key, text, start) in [
            (Key::Listen, "7070", "--listen: '7070' is no address"),
            (Key::LostAfter, "300", "--lost-after: '300' has no unit"),
            (Key::NodeFailures, "many", "--node-failures: "),
            (Key::Interference, "laws", "--interference: 'laws' is nothing to go by"),
            (Key::MaxSlowdown, "0.9", "--max-slowdown: '0.9' is not a slowdown"),
        ] {
            let failure = options_of(&[(key, text)]).unwrap_err();
            assert_eq!(failure.trouble, Trouble::Usage);
            assert!(failure.message.starts_with(start), "{failure}");
        }
    }
}
