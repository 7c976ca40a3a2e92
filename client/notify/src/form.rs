//! The form of each kind of channel: what is posted, or mailed.
//!
//! A form makes text of users harmless for its receiver: no mention, link, markup or header comes from it.

mod chat;
mod document;
mod failure;
mod mail;
mod post;
#[cfg(test)]
mod tests;
mod webhook;

use std::time::Duration;

use lettre::transport::smtp::SmtpTransport;

pub(crate) use self::failure::DeliveryFailure;
use self::post::HttpSender;
use crate::clock::wall_clock;
use crate::config::{ChannelConfig, ChannelKind};
use crate::message::Message;

/// How long one attempt may take.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(30);

/// Delivers messages over one channel. Its methods block.
#[derive(Debug)]
pub(crate) struct Sender {
    channel: ChannelConfig,
    transport: Transport,
}

#[derive(Debug)]
enum Transport {
    Http(HttpSender),
    Smtp(Box<SmtpTransport>),
}

impl Sender {
    /// Prepares a channel; connects to nothing.
    pub(crate) fn new(channel: &ChannelConfig) -> Result<Sender, String> {
        Sender::with_limit(channel, ATTEMPT_LIMIT)
    }

    /// The same with another limit on the time of an attempt.
    pub(crate) fn with_limit(channel: &ChannelConfig, limit: Duration) -> Result<Sender, String> {
        let transport = match &channel.kind {
            ChannelKind::Smtp { .. } => Transport::Smtp(Box::new(mail::transport(channel, limit)?)),
            ChannelKind::Webhook(_)
            | ChannelKind::Slack
            | ChannelKind::Mattermost
            | ChannelKind::Discord
            | ChannelKind::Ntfy(_) => Transport::Http(HttpSender::new(channel, limit)?),
        };
        Ok(Sender { channel: channel.clone(), transport })
    }

    /// Tries once to deliver a message to this recipient.
    pub(crate) fn deliver(&self, message: &Message, recipient: &str) -> Result<(), DeliveryFailure> {
        let http = match &self.transport {
            Transport::Smtp(transport) => return mail::send(transport, &self.channel, message, recipient),
            Transport::Http(http) => http,
        };
        let post = match &self.channel.kind {
            ChannelKind::Webhook(key) => webhook::post(message, key.as_ref(), wall_clock()),
            ChannelKind::Slack => chat::slack(message),
            ChannelKind::Mattermost => chat::mattermost(message, recipient),
            ChannelKind::Discord => chat::discord(message),
            ChannelKind::Ntfy(token) => chat::ntfy(message, recipient, &self.channel.url, token.as_ref()),
            ChannelKind::Smtp { .. } => {
                return Err(DeliveryFailure::Never("it is no HTTP channel".to_owned()));
            }
        };
        http.post(&post, &message.key)
    }
}
