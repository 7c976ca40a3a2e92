//! The pages about the whole cluster.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use cohabit_client::types::JobId;
use serde::Deserialize;

use super::answer::Asked;
use crate::state::WebState;
use crate::views::arrays::{ArrayMembers, Arrays, PAGE_MEMBERS};
use crate::views::nodes::NodesView;
use crate::views::overview::Overview;
use crate::views::people::People;
use crate::views::queue::{Queue, QueueQuery};
use crate::views::timeline::{TimelineQuery, TimelineView, with_earlier_attempts};

pub(super) async fn overview(
    State(state): State<Arc<WebState>>,
    headers: HeaderMap,
    address: Uri,
) -> Response {
    state.freshen().await;
    let cluster = state.cluster.borrow();
    let asked = Asked { state: &state, headers: &headers, address: &address };
    asked.show(&cluster, "Cluster", &Overview::new(&cluster))
}

pub(super) async fn queue(
    State(state): State<Arc<WebState>>,
    Query(query): Query<QueueQuery>,
    headers: HeaderMap,
    address: Uri,
) -> Response {
    state.freshen().await;
    let cluster = state.cluster.borrow();
    let view = Queue::new(&cluster, query, &state.by.user);
    state.viewers.look(Instant::now(), view.waiting(&cluster));
    Asked { state: &state, headers: &headers, address: &address }.show(&cluster, "Queue", &view)
}

pub(super) async fn nodes(State(state): State<Arc<WebState>>, headers: HeaderMap, address: Uri) -> Response {
    state.freshen().await;
    let cluster = state.cluster.borrow();
    let view = NodesView::new(&cluster, &state.zone);
    Asked { state: &state, headers: &headers, address: &address }.show(&cluster, "Nodes", &view)
}

pub(super) async fn timeline(
    State(state): State<Arc<WebState>>,
    Query(query): Query<TimelineQuery>,
    headers: HeaderMap,
    address: Uri,
) -> Response {
    state.freshen().await;
    let wanted = with_earlier_attempts(&state.cluster.borrow(), query);
    let repeated = match wanted.is_empty() {
        true => Ok(Arc::default()),
        false => state.with_attempts(wanted).await,
    };
    let cluster = state.cluster.borrow();
    // Without earlier attempts the latest ones are shown.
    let view = TimelineView::new(&cluster, &repeated.unwrap_or_default(), query, &state.zone);
    Asked { state: &state, headers: &headers, address: &address }.show(&cluster, "Timeline", &view)
}

pub(super) async fn arrays(State(state): State<Arc<WebState>>, headers: HeaderMap, address: Uri) -> Response {
    state.freshen().await;
    let cluster = state.cluster.borrow();
    let asked = Asked { state: &state, headers: &headers, address: &address };
    asked.show(&cluster, "Arrays", &Arrays::new(&cluster))
}

/// Where a page of members begins.
#[derive(Deserialize)]
pub(super) struct MembersQuery {
    #[serde(default)]
    after: Option<u32>,
}

pub(super) async fn array(
    State(state): State<Arc<WebState>>,
    Path(number): Path<u64>,
    Query(query): Query<MembersQuery>,
    headers: HeaderMap,
    address: Uri,
) -> Response {
    state.freshen().await;
    let after = query.after.map(|index| JobId::member(number, index));
    let members = state.members(number, after, PAGE_MEMBERS).await;
    let cluster = state.cluster.borrow();
    let asked = Asked { state: &state, headers: &headers, address: &address };
    match members {
        Err(error) => asked.problem(&cluster, &error),
        Ok(members) => {
            let known = cluster.jobs.get(JobId::new(number)).or(members.first());
            let name = known.map_or("", |job| &job.name);
            let view = ArrayMembers::new(number, name, &members, cluster.as_of());
            asked.show(&cluster, "Array", &view)
        }
    }
}

pub(super) async fn people(State(state): State<Arc<WebState>>, headers: HeaderMap, address: Uri) -> Response {
    state.freshen().await;
    let cluster = state.cluster.borrow();
    let asked = Asked { state: &state, headers: &headers, address: &address };
    asked.show(&cluster, "People", &People::new(&cluster))
}
