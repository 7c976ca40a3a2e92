//! Metrics of a Cohabit cluster, for Prometheus to scrape.
//!
//! The exporter is a client of the head: it asks for [`Figures`](cohabit_client::types::Figures) and nodes
//! when somebody scrapes it, at most once a second, and keeps nothing.

mod error;
mod exposition;
mod families;
mod scrape;
mod server;

pub use error::ExportError;
pub use families::MOST_SERIES;
pub use server::{ExportOptions, ExportServer};
