//! Which channels an entry goes to: those of the routes that the admins wrote, and those that the job's user
//! asked for.

use cohabit_client::types::{FeedEvent, FeedKind};

use crate::config::{NotifyConfig, Route, RouteEvent};

/// The rules of one channel.
#[derive(Debug, Clone)]
pub(crate) struct Router {
    /// The channel's name.
    name: String,
    /// Whether it takes what names no channel, or one that is not there.
    is_default: bool,
    /// The names of all channels.
    known: Vec<String>,
    /// The routes to this channel.
    routes: Vec<Route>,
}

impl Router {
    /// The rules of the channel of this name.
    pub(crate) fn of(config: &NotifyConfig, name: &str) -> Router {
        Router {
            name: name.to_owned(),
            is_default: config.default == name,
            known: config.channels.iter().map(|channel| channel.name.clone()).collect(),
            routes: config
                .routes
                .iter()
                .filter(|route| route.to.iter().any(|to| to == name))
                .cloned()
                .collect(),
        }
    }

    /// Whether it takes what belongs to no channel.
    pub(crate) const fn is_default(&self) -> bool {
        self.is_default
    }

    /// Whether an entry goes to this channel.
    pub(crate) fn takes(&self, event: &FeedEvent) -> bool {
        let requests = event.job.iter().flat_map(|job| &job.requests);
        let is_asked = requests.into_iter().any(|request| match &request.channel {
            Some(channel) if *channel == self.name => true,
            Some(channel) => self.is_default && !self.known.contains(channel),
            None => self.is_default,
        });
        is_asked || self.routes.iter().any(|route| is_for(route, event.kind, user(event)))
    }

    /// Whether this channel takes problems of the head.
    pub(crate) fn takes_problems(&self) -> bool {
        self.routes.iter().any(|route| route.events.contains(&RouteEvent::HeadProblem))
    }

    /// The channels that the job's user named and that are not there.
    pub(crate) fn unknown_channels<'a>(&self, event: &'a FeedEvent) -> Vec<&'a str> {
        let requests = event.job.iter().flat_map(|job| &job.requests);
        let named = requests.filter_map(|request| request.channel.as_deref());
        named.filter(|channel| !self.known.iter().any(|known| known == channel)).collect()
    }
}

/// The user of the job that the entry is about.
pub(crate) fn user(event: &FeedEvent) -> Option<&str> {
    event.job.as_ref().map(|job| job.user.as_str())
}

fn is_for(route: &Route, kind: FeedKind, user: Option<&str>) -> bool {
    let covers = |event: &RouteEvent| match event {
        RouteEvent::Feed(asked) => asked.covers(kind),
        RouteEvent::HeadProblem => false,
    };
    let is_wanted =
        route.users.is_empty() || user.is_some_and(|user| route.users.iter().any(|it| it == user));
    is_wanted && route.events.iter().any(covers)
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::NotifyRequest;

    use super::*;
    use crate::message::samples::{ended, node_lost};

    fn route(events: &[&str], to: &str, users: &[&str]) -> Route {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let events = events.iter().map(|event| event.parse().unwrap()).collect();
        Route { events, to: vec![to.to_owned()], users: owned(users) }
    }

    fn router(name: &str, routes: &[Route]) -> Router {
        let routes = routes.iter().filter(|route| route.to.contains(&name.to_owned())).cloned().collect();
        let known = vec!["mail".to_owned(), "chat".to_owned()];
        Router { name: name.to_owned(), is_default: name == "mail", known, routes }
    }

    /// The channels that take the end of a job of ada with these requests.
    fn takers(routes: &[Route], requests: &[(&str, Option<&str>)]) -> Vec<&'static str> {
        let mut event = ended(1);
        let request = |(event, channel): &(&str, Option<&str>)| NotifyRequest {
            event: event.parse().unwrap(),
            channel: channel.map(str::to_owned),
        };
        event.job.as_mut().unwrap().requests = requests.iter().map(request).collect();
        ["mail", "chat"].into_iter().filter(|name| router(name, routes).takes(&event)).collect()
    }

    #[test]
    fn an_entry_goes_where_the_admins_or_its_user_want_it_and_to_each_channel_once() {
        assert_eq!(takers(&[], &[]), [""; 0]);
        assert_eq!(takers(&[], &[("fail", Some("chat"))]), ["chat"]);
        assert_eq!(takers(&[], &[("fail", None)]), ["mail"]);
        assert_eq!(takers(&[], &[("fail", Some("gone"))]), ["mail"], "the default one");
        let routes = [route(&["fail"], "chat", &[])];
        assert_eq!(takers(&routes, &[]), ["chat"]);
        assert_eq!(takers(&routes, &[("fail", None), ("fail", Some("chat"))]), ["mail", "chat"]);
    }

    #[test]
    fn a_route_is_for_its_events_and_its_users() {
        assert_eq!(takers(&[route(&["end"], "chat", &[])], &[]), ["chat"], "a failure is an end");
        assert_eq!(takers(&[route(&["start", "stall"], "chat", &[])], &[]), [""; 0]);
        assert_eq!(takers(&[route(&["fail"], "chat", &["eve"])], &[]), [""; 0]);
        assert_eq!(takers(&[route(&["fail"], "chat", &["eve", "ada"])], &[]), ["chat"]);
        let nodes = router("chat", &[route(&["node-lost", "head-problem"], "chat", &[])]);
        assert!(nodes.takes(&node_lost()) && nodes.takes_problems());
        let of_eve = router("chat", &[route(&["node-lost"], "chat", &["eve"])]);
        assert!(!of_eve.takes(&node_lost()) && !of_eve.takes_problems());
    }

    #[test]
    fn channels_that_are_not_there_are_named() {
        let mut event = ended(1);
        let request = |channel: &str| NotifyRequest { event: event.kind, channel: Some(channel.to_owned()) };
        event.job.as_mut().unwrap().requests = vec![request("mail"), request("gone")];
        assert_eq!(router("mail", &[]).unknown_channels(&event), ["gone"]);
    }
}
