//! Routes: which events go to which channels, whatever the jobs ask for.

use std::fmt;
use std::str::FromStr;

use cohabit_client::types::FeedKind;
use cohabit_settings::closest_name;

use super::channel::{ChannelAddress, ChannelConfig};
use super::known_names::known_names;
use super::table::{ConfigError, TableReader};

/// The keys of a route.
pub(super) const KEYS: &[&str] = &["events", "to", "users"];

/// Which events go to which channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) events: Vec<RouteEvent>,
    /// Names of channels.
    pub(crate) to: Vec<String>,
    /// Whose jobs; everybody's where it is empty.
    pub(crate) users: Vec<String>,
}

/// What a route may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteEvent {
    /// An entry of the feed.
    Feed(FeedKind),
    /// The head cannot be reached, or cannot write its journal.
    HeadProblem,
}

/// The name of the event that is not of the feed.
const HEAD_PROBLEM: &str = "head-problem";

impl fmt::Display for RouteEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteEvent::Feed(kind) => kind.fmt(f),
            RouteEvent::HeadProblem => f.pad(HEAD_PROBLEM),
        }
    }
}

impl FromStr for RouteEvent {
    type Err = String;
    fn from_str(text: &str) -> Result<RouteEvent, String> {
        if text == HEAD_PROBLEM {
            return Ok(RouteEvent::HeadProblem);
        }
        let words: Vec<&str> = FeedKind::ALL.map(FeedKind::word).into_iter().chain([HEAD_PROBLEM]).collect();
        text.parse().map(RouteEvent::Feed).map_err(|_| match closest_name(text, words.iter().copied()) {
            Some(nearest) => format!("'{text}' is not an event: did you mean '{nearest}'?"),
            None => format!("'{text}' is not an event: use {}", words.join(", ")),
        })
    }
}

impl Route {
    pub(super) fn read(table: &TableReader<'_>, channels: &[ChannelConfig]) -> Result<Route, ConfigError> {
        let missing = |key: &str| table.wrong(key, format!("{key} is missing: add {key} = [\"...\"]"));
        let mut events = Vec::new();
        for word in table.texts("events")? {
            events.push(word.parse::<RouteEvent>().map_err(|why| table.wrong("events", why))?);
        }
        let (to, users) = (table.texts("to")?, table.texts("users")?);
        if events.is_empty() || to.is_empty() {
            return Err(missing(if events.is_empty() { "events" } else { "to" }));
        }
        for name in &to {
            let Some(channel) = channels.iter().find(|channel| channel.name == *name) else {
                let known = known_names(name, channels.iter().map(|it| it.name.as_str()));
                return Err(table.wrong("to", format!("there is no channel '{name}': {known}")));
            };
            let of_nobody = events.iter().find(|event| !is_of_job(**event));
            if let (Some(event), ChannelAddress::OfUser(_)) = (of_nobody, &channel.address) {
                let what = format!(
                    "'{event}' happens to no job, and the address of the channel '{name}' needs the user of one \
                     ({{user}}): send it to another channel"
                );
                return Err(table.wrong("to", what));
            }
        }
        Ok(Route { events, to, users })
    }
}

const fn is_of_job(event: RouteEvent) -> bool {
    match event {
        RouteEvent::Feed(kind) => kind.is_of_job(),
        RouteEvent::HeadProblem => false,
    }
}
