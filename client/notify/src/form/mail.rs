//! Mail, handed to a mail server over SMTP. The library composes it, so that no text becomes a header.

use std::time::Duration;

use cohabit_client::types::shortened;
use cohabit_console::printable_line;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message as Mail};
use lettre::transport::smtp::SmtpTransport;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, Transport};
use ureq::http::Uri;

use super::failure::DeliveryFailure;
use crate::config::{ChannelConfig, ChannelKind};
use crate::message::Message;

/// What of an answer is quoted, in bytes.
const MOST_QUOTED: usize = 200;

/// Tells programs that answer mail, such as vacation notices, to leave this one alone.
#[derive(Debug, Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<AutoSubmitted, Box<dyn std::error::Error + Send + Sync>> {
        Ok(AutoSubmitted)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(AutoSubmitted::name(), "auto-generated".to_owned())
    }
}

/// The mail server of a channel; connects to nothing.
pub(super) fn transport(channel: &ChannelConfig, limit: Duration) -> Result<SmtpTransport, String> {
    let invalid =
        || "the address in url-file is none of a mail server: write smtps://USER:PASSWORD@HOST".to_owned();
    let url = channel.url.reveal();
    let builder = SmtpTransport::from_url(url).map_err(|_| invalid())?.timeout(Some(limit / 2));
    let Some(authorities) = &channel.authorities else { return Ok(builder.build()) };
    let uri: Uri = url.parse().map_err(|_| invalid())?;
    let mut parameters = TlsParameters::builder(uri.host().ok_or_else(invalid)?.to_owned());
    let wrong = |_| "ca-file has no certificate that can be used".to_owned();
    for item in ureq::tls::parse_pem(authorities).flatten() {
        if let ureq::tls::PemItem::Certificate(certificate) = item {
            let certificate = Certificate::from_der(certificate.der().to_vec()).map_err(wrong)?;
            parameters = parameters.add_root_certificate(certificate);
        }
    }
    let parameters = parameters.build().map_err(wrong)?;
    Ok(match (uri.scheme_str(), uri.query()) {
        (Some("smtps"), _) => builder.tls(Tls::Wrapper(parameters)).build(),
        (_, Some(_)) => builder.tls(Tls::Required(parameters)).build(),
        (_, None) => builder.build(),
    })
}

/// Tries once to hand a message to the mail server.
pub(super) fn send(
    transport: &SmtpTransport,
    channel: &ChannelConfig,
    message: &Message,
    recipient: &str,
) -> Result<(), DeliveryFailure> {
    let mail = compose(channel, message, recipient).map_err(DeliveryFailure::Never)?;
    transport.send(&mail).map(drop).map_err(|error| {
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            why = format!("{why}: {next}");
            cause = next.source();
        }
        let why = shortened(&printable_line(&why), MOST_QUOTED);
        match error.status() {
            Some(code) if error.is_permanent() && !is_about_us(code.into()) => DeliveryFailure::Never(why),
            Some(_) | None => DeliveryFailure::Later { why, after: None },
        }
    })
}

/// Whether the server refuses this program and not the message: its password is wrong, or it has to encrypt.
const fn is_about_us(code: u16) -> bool {
    matches!(code, 500 | 502..=504 | 521 | 530 | 534 | 535 | 538)
}

fn compose(channel: &ChannelConfig, message: &Message, recipient: &str) -> Result<Mail, String> {
    let ChannelKind::Smtp { from } = &channel.kind else { return Err("it is no mail channel".to_owned()) };
    let to: Mailbox = recipient
        .parse()
        .map_err(|error| format!("'{}' is no address: {error}", printable_line(recipient)))?;
    let body = format!("{}\n\n-- \nSent by cohabit notify.\n", message.text());
    Mail::builder()
        .from(from.as_ref().clone())
        .to(to)
        .subject(message.title.clone())
        .message_id(Some(message_id(&from.email, channel, &message.key)))
        .header(AutoSubmitted)
        .header(ContentType::TEXT_PLAIN)
        .body(body)
        .map_err(|error| error.to_string())
}

/// The same for each attempt, so that mail systems can tell a second copy.
fn message_id(from: &Address, channel: &ChannelConfig, key: &str) -> String {
    format!("<cohabit.{key}.{}@{}>", channel.name, from.domain())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ChannelAddress;
    use crate::message::samples::{ended, entry};
    use cohabit_settings::FileSecret;

    fn channel() -> ChannelConfig {
        ChannelConfig {
            name: "mail".into(),
            kind: ChannelKind::Smtp { from: Box::new("Cohabit <cohabit@lab.example>".parse().unwrap()) },
            url: FileSecret::of("smtps://ada:secret@mail.lab.example"),
            authorities: None,
            address: ChannelAddress::OfUser("{user}@lab.example".into()),
            most_per_minute: 20,
        }
    }

    fn mail(name: &str) -> String {
        let mut event = ended(12);
        event.job.as_mut().unwrap().name = name.into();
        let mail = compose(&channel(), &Message::of(entry(7, event)), "ada@lab.example").unwrap();
        String::from_utf8(mail.formatted()).unwrap()
    }

    fn headers(mail: &str) -> Vec<&str> {
        let headers = mail.split("\r\n\r\n").next().unwrap().lines();
        headers.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(':').next()).collect()
    }

    #[test]
    fn a_mail_has_the_headers_that_readers_and_robots_need() {
        let text = mail("train");
        for line in [
            "From: Cohabit <cohabit@lab.example>",
            "To: ada@lab.example",
            "Subject: Job 12 train failed",
            "Message-ID: <cohabit.7.mail@lab.example>",
            "Auto-Submitted: auto-generated",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert!(text.contains("it exited with code 3"), "{text}");
    }

    #[test]
    fn no_name_adds_a_header_or_a_recipient() {
        let plain = headers(&mail("train")).len();
        for name in
            ["a\r\nBcc: eve@example.org", "a\nBcc: eve@example.org\n\nbody", "a\u{2028}Bcc: x", "ü\r\n.\r\n"]
        {
            let text = mail(name);
            assert_eq!(headers(&text).len(), plain, "{text}");
            assert!(!text.contains("\nBcc"), "{text}");
        }
    }

    #[test]
    fn a_wrong_password_is_tried_again_and_an_unknown_recipient_is_not() {
        for (code, about_us) in [(535, true), (530, true), (550, false), (554, false)] {
            assert_eq!(is_about_us(code), about_us, "{code}");
        }
    }

    #[test]
    fn servers_are_reached_as_their_address_says() {
        let limit = Duration::from_secs(1);
        transport(&channel(), limit).unwrap();
        let local = ChannelConfig { url: FileSecret::of("smtp://127.0.0.1:25"), ..channel() };
        transport(&local, limit).unwrap();
        assert!(transport(&ChannelConfig { url: FileSecret::of("nonsense"), ..channel() }, limit).is_err());
    }
}
