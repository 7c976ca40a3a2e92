//! What the user of a job wants to be told about it, and by which channel.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::FeedKind;

/// A request of a job's user to be told of an event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NotifyRequest {
    /// The event.
    pub event: FeedKind,
    /// The name of the channel, among those that the admins have set up; the default one without it.
    pub channel: Option<String>,
}

impl NotifyRequest {
    /// How many of them a job may have.
    pub const MOST: usize = 32;
    /// The longest name of a channel, in bytes.
    pub const LONGEST_CHANNEL: usize = 64;
}

impl fmt::Display for NotifyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.channel {
            Some(channel) => write!(f, "{}@{channel}", self.event),
            None => self.event.fmt(f),
        }
    }
}

/// Refuses what cannot be the name of a channel.
///
/// # Errors
/// What is wrong and what to do.
pub fn check_channel_name(name: &str) -> Result<(), String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    match name {
        "" => Err("the name of the channel is empty: write it after the @, or leave both out".to_owned()),
        name if name.len() > NotifyRequest::LONGEST_CHANNEL => Err(format!(
            "the name of the channel has {} bytes, and at most {} are allowed",
            name.len(),
            NotifyRequest::LONGEST_CHANNEL
        )),
        name if !name.chars().all(is_plain) => Err(format!(
            "{name:?} cannot be the name of a channel: use ASCII letters, digits, '-', '_' and '.'"
        )),
        _ => Ok(()),
    }
}

/// Refuses requests that nobody could answer.
pub(crate) fn check_requests(requests: &[NotifyRequest]) -> Result<(), String> {
    let (count, most) = (requests.len(), NotifyRequest::MOST);
    if count > most {
        return Err(format!("the job asks for {count} messages, and at most {most} are allowed (--notify)"));
    }
    for NotifyRequest { event, channel } in requests {
        if !event.is_of_job() {
            let known = FeedKind::ALL.into_iter().filter(|kind| kind.is_of_job());
            let known: Vec<&str> = known.map(FeedKind::word).collect();
            let known = known.join(", ");
            return Err(format!("'{event}' happens to no job: --notify takes {known}"));
        }
        channel.as_deref().map_or(Ok(()), check_channel_name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobSpec;

    fn refusal(notify: Vec<NotifyRequest>) -> Option<String> {
        let plain = JobSpec::command(vec!["true".into()], "/".into());
        JobSpec { notify, ..plain }.check().err()
    }

    fn request(event: FeedKind, channel: &str) -> NotifyRequest {
        NotifyRequest { event, channel: Some(channel.to_owned()) }
    }

    #[test]
    fn requests_are_bounded_and_name_events_of_jobs_and_plain_channels() {
        let longest = "x".repeat(NotifyRequest::LONGEST_CHANNEL);
        assert_eq!(refusal(vec![request(FeedKind::Fail, &longest); NotifyRequest::MOST]), None);
        let refused = |requests| refusal(requests).unwrap();
        assert!(refused(vec![request(FeedKind::Fail, "a"); 33]).contains("33 messages, and at most 32"));
        assert!(refused(vec![request(FeedKind::NodeLost, "a")]).contains("start, end, fail"));
        assert!(refused(vec![request(FeedKind::End, &format!("{longest}x"))]).contains("65 bytes"));
        for name in ["", "a b", "a\nb", "a@b", "ü"] {
            assert!(
                refused(vec![request(FeedKind::End, name)]).contains("name of the channel")
                    || refused(vec![request(FeedKind::End, name)]).contains("name of a channel"),
                "{name:?}"
            );
        }
    }

    #[test]
    fn a_request_is_written_as_on_the_command_line() {
        assert_eq!(request(FeedKind::Fail, "mail").to_string(), "fail@mail");
        assert_eq!(NotifyRequest { event: FeedKind::End, channel: None }.to_string(), "end");
    }
}
