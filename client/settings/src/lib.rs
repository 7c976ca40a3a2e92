//! Settings from flags, `COHABIT_*` environment variables and configuration files, for the command line and
//! the SDK: one program finds the same head as the other.
//!
//! [`Settings`] holds the sources in their order. `file` reads one file, `key` names what may be set, and
//! `location` says where the head is and which file has the token. Nothing here opens a connection or reads a
//! token. All of it reads small files where it is called: async code calls it on a blocking thread.
#![warn(missing_docs)]

mod closest_name;
mod error;
mod file;
mod key;
mod location;
mod secret;
mod settings;

pub use closest_name::closest_name;
pub use error::{SettingsError, SettingsErrorKind};
pub use file::parse_settings;
pub use key::{RawSettings, SettingKey};
pub use location::{ADMIN_TOKEN, TokenLocation, default_state_directory, read_head_address};
pub use secret::FileSecret;
pub use settings::{Setting, SettingSource, Settings};

#[cfg(test)]
mod tests;
