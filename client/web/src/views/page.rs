//! What surrounds every page: the menu, and whether what it shows is the present state.

use std::time::Instant;

use askama::Template;
use cohabit_console::records::local_time;

use super::line;
use crate::cluster::Cluster;
use crate::state::WebState;

/// The pages of the menu, and their addresses.
const MENU: [(&str, &str); 6] = [
    ("/", "Cluster"),
    ("/queue", "Queue"),
    ("/nodes", "Nodes"),
    ("/timeline", "Timeline"),
    ("/arrays", "Arrays"),
    ("/people", "People"),
];

/// An entry of the menu.
#[derive(Debug)]
pub(crate) struct MenuItem {
    pub(crate) address: &'static str,
    pub(crate) label: &'static str,
    pub(crate) is_current: bool,
}

/// A whole page.
#[derive(Template)]
#[template(path = "page.html")]
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    pub(crate) menu: Vec<MenuItem>,
    pub(crate) user: String,
    pub(crate) head: &'a str,
    pub(crate) assets: &'a str,
    /// HTML of the part that is kept up to date.
    pub(crate) live: &'a str,
    /// HTML of the part that is not.
    pub(crate) still: &'a str,
}

/// The part of a page that is kept up to date.
#[derive(Template)]
#[template(path = "live.html")]
pub(crate) struct Live<'a> {
    /// Where its present state is.
    pub(crate) address: &'a str,
    pub(crate) staleness: Option<Staleness>,
    pub(crate) problems: Vec<String>,
    /// HTML.
    pub(crate) view: &'a str,
}

/// That the head is away, since when and why.
#[derive(Debug)]
pub(crate) struct Staleness {
    pub(crate) since: Option<String>,
    pub(crate) why: Option<String>,
}

impl<'a> Page<'a> {
    pub(crate) fn new(
        state: &'a WebState,
        title: &'a str,
        assets: &'a str,
        live: &'a str,
        still: &'a str,
    ) -> Page<'a> {
        let item = |(address, label)| MenuItem { address, label, is_current: title == label };
        Page {
            title,
            menu: MENU.into_iter().map(item).collect(),
            user: line(&state.by.user),
            head: state.client.head(),
            assets,
            live,
            still,
        }
    }
}

impl<'a> Live<'a> {
    pub(crate) fn new(state: &WebState, cluster: &Cluster, address: &'a str, view: &'a str) -> Live<'a> {
        let staleness = cluster.is_stale(Instant::now()).then(|| Staleness {
            since: cluster.seen.map(|(_, wall)| local_time(wall, &state.zone)),
            why: cluster.failure.as_deref().map(line),
        });
        Live { address, staleness, problems: cluster.problems.iter().map(|it| line(it)).collect(), view }
    }
}
