//! Who may see the pages: other accounts of the machine reach the port, too, and so does every page that the
//! browser shows.
//!
//! The terminal prints an address with a key that is good once and for a minute ([`entry`]). It becomes a
//! session, whose cookie comes with every request. [`guard`] checks each request before a route sees it.

pub(crate) mod entry;
pub(crate) mod guard;
pub(crate) mod headers;
mod secret;
