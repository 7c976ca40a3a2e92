//! A message as JSON, for webhooks. Names never change; `version` counts changes that a reader would
//! misunderstand.

use cohabit_client::types::{FeedEntry, FeedJob};
use serde::Serialize;

use crate::clock::rfc3339;
use crate::message::{Message, MessageUrgency};

const VERSION: u32 = 1;

#[derive(Debug, Serialize)]
pub(super) struct MessageDocument<'a> {
    version: u32,
    key: &'a str,
    event: &'a str,
    urgency: &'static str,
    at: String,
    title: &'a str,
    text: String,
    entries: Vec<EntryDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct EntryDocument<'a> {
    number: u64,
    at: String,
    event: &'static str,
    text: &'a str,
    job: Option<JobDocument<'a>>,
    node: Option<&'a str>,
    device: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct JobDocument<'a> {
    id: String,
    name: &'a str,
    user: &'a str,
    state: &'static str,
    reason_code: &'static str,
    reason: &'a str,
    attempt: u32,
    exit_code: Option<i32>,
    signal: Option<String>,
    nodes: &'a [String],
    members: Option<u64>,
    submitted_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
}

impl<'a> MessageDocument<'a> {
    pub(super) fn of(message: &'a Message) -> MessageDocument<'a> {
        MessageDocument {
            version: VERSION,
            key: &message.key,
            event: &message.event,
            urgency: match message.urgency {
                MessageUrgency::Low => "low",
                MessageUrgency::Normal => "normal",
                MessageUrgency::High => "high",
            },
            at: rfc3339(message.at),
            title: &message.title,
            text: message.text(),
            entries: message.entries.iter().map(EntryDocument::of).collect(),
        }
    }
}

impl<'a> EntryDocument<'a> {
    fn of(entry: &'a FeedEntry) -> EntryDocument<'a> {
        let event = &entry.event;
        EntryDocument {
            number: entry.number,
            at: rfc3339(event.at),
            event: event.kind.word(),
            text: &event.text,
            job: event.job.as_ref().map(JobDocument::of),
            node: event.node.as_deref(),
            device: event.device.as_ref().map(|device| device.as_str()),
        }
    }
}

impl<'a> JobDocument<'a> {
    fn of(job: &'a FeedJob) -> JobDocument<'a> {
        JobDocument {
            id: job.id.to_string(),
            name: &job.name,
            user: &job.user,
            state: job.state.word(),
            reason_code: job.reason_code.code(),
            reason: &job.reason,
            attempt: job.attempt,
            exit_code: job.exit_code,
            signal: job.signal.map(|signal| signal.to_string()),
            nodes: &job.nodes,
            members: job.array.as_ref().map(|array| array.members),
            submitted_at: rfc3339(job.submitted_at),
            started_at: job.started_at.map(rfc3339),
            ended_at: job.ended_at.map(rfc3339),
        }
    }
}
