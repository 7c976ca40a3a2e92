//! Pages that show a cluster in a browser: a client of the head like any other, with the token of one person.
//!
//! ```text
//! head ── one look a second ──> cluster ──> views ──> templates ──> browser
//!                                 └─ questions about one job, on request, cached for a second
//! ```
//!
//! | Module | What it holds |
//! |---|---|
//! | `access` | who may see the pages: the one-time key, the session, the checks of each request |
//! | `cluster` | what is known of the cluster, kept up to date at the cost of what changed |
//! | `views` | what each page shows, as texts and numbers; `templates/` turns it into HTML |
//! | `routes` | which request gets which view, and the changes of jobs |
//! | `server` | where the pages are served, and to whom |
//!
//! Nothing here decides about jobs or keeps anything on the disk. Start reading at `routes/mod.rs`.

mod access;
mod clock;
mod cluster;
#[cfg(test)]
mod contrast;
mod error;
mod routes;
mod server;
mod state;
mod views;

pub use self::error::WebError;
pub use self::server::{EntryAddresses, WebOptions, WebServer};
