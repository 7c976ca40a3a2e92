//! The file that admins write: which channels there are, and what goes where.
//!
//! Only this file names addresses. It holds no secrets itself: an address that is one, a password or a key is
//! in a file of its own that nobody else may read. A key that is not known is an error.

mod channel;
mod known_names;
mod route;
mod table;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cohabit_console::line_of;
use toml::de::DeTable;

pub(crate) use self::channel::{ChannelAddress, ChannelConfig, ChannelKind, topic_of};
use self::known_names::known_names;
pub(crate) use self::route::{Route, RouteEvent};
use self::table::{ConfigError, TableReader};
use crate::NotifyError;

/// The largest configuration file, in bytes.
const MOST_BYTES: u64 = 1 << 20;
const MOST_CHANNELS: usize = 32;
const MOST_ROUTES: usize = 256;

/// What an operator has set up.
#[derive(Debug)]
pub struct NotifyConfig {
    /// Where it is noted how far each channel has come.
    pub(crate) state: PathBuf,
    pub(crate) channels: Vec<ChannelConfig>,
    pub(crate) routes: Vec<Route>,
    /// The channel for requests that name none, or one that is not there.
    pub(crate) default: String,
}

impl NotifyConfig {
    /// Reads a file and the files with secrets that it names. Blocks.
    ///
    /// # Errors
    /// What is wrong, on which line, and what to do.
    pub fn read(path: &Path) -> Result<NotifyConfig, NotifyError> {
        let problem = |line, what| NotifyError::Config { path: path.to_owned(), line, what };
        let text = text_of(path).map_err(|what| problem(None, what))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let folder = if folder.is_absolute() { folder.to_owned() } else { Path::new(".").join(folder) };
        parse(&text, &folder).map_err(|error| match error.offset {
            Some(offset) => problem(Some(line_of(&text, offset)), error.what),
            None => problem(None, error.what),
        })
    }

    /// What is set up, in one line for each channel.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut lines = format!("{} channels, {} routes\n", self.channels.len(), self.routes.len());
        for channel in &self.channels {
            let routes = self.routes.iter().filter(|route| route.to.contains(&channel.name)).count();
            let default = if channel.name == self.default { ", the default channel" } else { "" };
            lines += &format!("{}: {}, {routes} routes{default}\n", channel.name, channel.kind.word());
        }
        lines
    }

    pub(crate) fn channel(&self, name: &str) -> Result<&ChannelConfig, NotifyError> {
        let found = self.channels.iter().find(|channel| channel.name == name);
        found.ok_or_else(|| {
            let known = known_names(name, self.channels.iter().map(|it| it.name.as_str()));
            NotifyError::NoSuchChannel { name: name.to_owned(), known }
        })
    }
}

/// The text, unless others could change it: they could name addresses in the head's network.
fn text_of(path: &Path) -> Result<String, String> {
    let cannot = |error| format!("cannot read it: {error}");
    let file = File::open(path).map_err(cannot)?;
    let mode = file.metadata().map_err(cannot)?.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!(
            "other users can write to it (mode {mode:o}): run chmod go-w {}",
            path.display()
        ));
    }
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(cannot)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(format!("it is larger than {} KiB", MOST_BYTES >> 10)),
        false => Ok(text),
    }
}

fn parse(text: &str, folder: &Path) -> Result<NotifyConfig, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| ConfigError {
        offset: error.span().map(|span| span.start),
        what: error.message().to_owned(),
    })?;
    let top = TableReader::top(document.get_ref(), &["state", "default", "channel", "route"])?;
    let state = folder.join(top.required_text("state")?);
    let mut channels: Vec<ChannelConfig> = Vec::new();
    for table in top.tables("channel", MOST_CHANNELS, channel::KEYS)? {
        let channel = ChannelConfig::read(&table, folder)?;
        if channels.iter().any(|other| other.name == channel.name) {
            return Err(table.wrong("name", format!("there are two channels '{}'", channel.name)));
        }
        channels.push(channel);
    }
    let mut routes = Vec::new();
    for table in top.tables("route", MOST_ROUTES, route::KEYS)? {
        routes.push(Route::read(&table, &channels)?);
    }
    let default = match (top.text("default")?, channels.as_slice()) {
        (_, []) => {
            return Err(ConfigError::of_file("there is no channel: add a [[channel]] with name and kind"));
        }
        (Some(name), _) if channels.iter().any(|channel| channel.name == name) => name,
        (Some(name), _) => {
            let known = known_names(&name, channels.iter().map(|it| it.name.as_str()));
            return Err(top.wrong("default", format!("there is no channel '{name}': {known}")));
        }
        (None, [only]) => only.name.clone(),
        (None, _) => {
            let what = "there are several channels, and no default one for jobs that name none: add `default = \
                        \"NAME\"` at the top";
            return Err(ConfigError::of_file(what));
        }
    };
    Ok(NotifyConfig { state, channels, routes, default })
}
