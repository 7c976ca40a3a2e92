//! `--notify`: the events that the user of a job wants to be told of, and by which channel.

use std::str::FromStr;

use cohabit_client::types::{FeedKind, NotifyRequest, check_channel_name};

use cohabit_settings::closest_name;

/// The requests of one `--notify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyArgument(pub(crate) Vec<NotifyRequest>);

/// `end,fail,stall@mail`: an event without a channel has that of the next one that has one. A value of the
/// same flag that comes before a comma belongs to it, so the whole list is one value.
pub fn parse_notify(text: &str) -> Result<NotifyArgument, String> {
    let (mut requests, mut waiting) = (Vec::new(), 0);
    for word in text.split(',').map(str::trim) {
        let (event, channel) = word.split_once('@').map_or((word, None), |(event, name)| (event, Some(name)));
        channel.map_or(Ok(()), check_channel_name)?;
        requests.push(NotifyRequest { event: parse_event(event)?, channel: None });
        if let Some(channel) = channel {
            requests[waiting..].iter_mut().for_each(|it| it.channel = Some(channel.to_owned()));
            waiting = requests.len();
        }
    }
    Ok(NotifyArgument(requests))
}

fn parse_event(text: &str) -> Result<FeedKind, String> {
    let events = FeedKind::ALL.into_iter().filter(|kind| kind.is_of_job());
    let words: Vec<&str> = events.map(FeedKind::word).collect();
    match FeedKind::from_str(text).ok().filter(|kind| kind.is_of_job()) {
        Some(event) => Ok(event),
        None => Err(match closest_name(text, words.iter().copied()) {
            Some(nearest) => format!("'{text}' is not an event of a job: did you mean '{nearest}'?"),
            None => format!("'{text}' is not an event of a job: use {}", words.join(", ")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        let requests = parse_notify(text)?.0;
        Ok(requests.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_channel_is_that_of_all_events_before_it_that_have_none() {
        for (text, requests) in [
            ("end", "end"),
            ("end,fail", "end fail"),
            ("end,fail,stall@mail", "end@mail fail@mail stall@mail"),
            ("end,fail@mail,stall@chat", "end@mail fail@mail stall@chat"),
            ("fail@mail,end", "fail@mail end"),
            (" start , oom@a.b-c_d", "start@a.b-c_d oom@a.b-c_d"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(requests), "{text}");
        }
    }

    #[test]
    fn an_unknown_event_is_refused_with_the_nearest_one() {
        for (text, part) in [
            ("ended", "did you mean 'end'?"),
            ("fial", "did you mean 'fail'?"),
            ("stalled", "did you mean 'stall'?"),
            ("xyz", "use start, end, fail, timeout, oom, stall, idle, requeue, reclaim"),
            ("node-lost", "is not an event of a job"),
            ("end,", "'' is not an event"),
            ("end@", "name of the channel is empty"),
            ("end@a b", "name of a channel"),
            ("end@a@b", "name of a channel"),
        ] {
            let refusal = parsed(text).unwrap_err();
            assert!(refusal.contains(part), "{text}: {refusal}");
        }
    }
}
