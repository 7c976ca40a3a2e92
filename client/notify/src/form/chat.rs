//! Chats: Slack, Mattermost, Discord, and ntfy.

use serde_json::json;

use super::post::HttpPost;
use crate::config::topic_of;
use crate::message::{Message, MessageUrgency};
use cohabit_settings::FileSecret;

/// The longest text that Slack shows, in characters; more is cut there anyhow.
const LONGEST_SLACK: usize = 3_000;
/// The longest text that Discord accepts, in characters, less the frame around it.
const LONGEST_DISCORD: usize = 1_900;
/// The longest text of ntfy that is no attachment, in bytes.
const LONGEST_NTFY: usize = 3_500;

fn json_post(body: &serde_json::Value) -> HttpPost {
    HttpPost { body: body.to_string(), headers: Vec::new(), to_root: false }
}

/// In Slack's text, `&`, `<` and `>` begin mentions and links; written as entities they begin none.
pub(super) fn slack(message: &Message) -> HttpPost {
    let text = cut(&message.text(), LONGEST_SLACK);
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json_post(&json!({
        "text": text, "mrkdwn": false, "parse": "none", "link_names": false, "unfurl_links": false,
        "unfurl_media": false,
    }))
}

/// Mattermost reads Markdown and mentions, except in a block of code. The address is a channel or a person
/// (`@ada`) other than the one that the webhook was made for.
pub(super) fn mattermost(message: &Message, recipient: &str) -> HttpPost {
    let mut body = json!({ "text": block(&message.text().replace('@', "@\u{200b}")) });
    if !recipient.is_empty() {
        body["channel"] = recipient.into();
    }
    json_post(&body)
}

/// Discord is told to heed no mention, and to show no preview of a link.
pub(super) fn discord(message: &Message) -> HttpPost {
    let text = cut(&message.text(), LONGEST_DISCORD);
    json_post(&json!({ "content": block(&text), "allowed_mentions": { "parse": [] }, "flags": 4 }))
}

/// Sent as JSON to the root of the server, for headers could not hold every title.
pub(super) fn ntfy(
    message: &Message,
    recipient: &str,
    url: &FileSecret,
    token: Option<&FileSecret>,
) -> HttpPost {
    let topic = if recipient.is_empty() { topic_of(url).unwrap_or_default() } else { recipient.to_owned() };
    let mut text = message.lines.join("\n");
    text.truncate(text.floor_char_boundary(LONGEST_NTFY));
    let priority = match message.urgency {
        MessageUrgency::Low => 2,
        MessageUrgency::Normal => 3,
        MessageUrgency::High => 4,
    };
    let body = json!({
        "topic": topic, "title": message.title, "message": text, "priority": priority, "tags": [message.event],
    });
    let headers =
        token.map(|token| ("Authorization", format!("Bearer {}", token.reveal()))).into_iter().collect();
    HttpPost { body: body.to_string(), headers, to_root: true }
}

/// A block of code, which the text cannot end.
fn block(text: &str) -> String {
    format!("```\n{}\n```", text.replace('`', "'"))
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::message::samples::{ended, entry};

    fn named(name: &str) -> Message {
        let mut event = ended(1);
        event.job.as_mut().unwrap().name = name.into();
        Message::of(entry(7, event))
    }

    fn body(post: &HttpPost) -> Value {
        serde_json::from_str(&post.body).unwrap()
    }

    #[test]
    fn no_name_is_a_mention_or_a_link_in_slack() {
        let post = body(&slack(&named("<!channel> & <https://evil.example|click>")));
        let text = post["text"].as_str().unwrap();
        assert!(!text.contains(['<', '>']), "{text}");
        assert!(text.starts_with("Job 1 &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt; failed\n"));
        assert_eq!((&post["parse"], &post["mrkdwn"]), (&json!("none"), &json!(false)));
    }

    #[test]
    fn no_name_is_a_mention_or_ends_the_block_in_mattermost_and_discord() {
        let hostile = named("```\n@channel @everyone **x**");
        let text = body(&mattermost(&hostile, ""))["text"].as_str().unwrap().to_owned();
        assert_eq!(text.matches("```").count(), 2, "{text}");
        assert!(text.starts_with("```\n") && text.ends_with("\n```") && !text.contains("@channel"), "{text}");
        let post = body(&discord(&hostile));
        let text = post["content"].as_str().unwrap();
        assert_eq!(text.matches("```").count(), 2, "{text}");
        assert_eq!(post["allowed_mentions"], json!({ "parse": [] }));
    }

    #[test]
    fn texts_are_as_long_as_each_chat_takes() {
        let mut long = named("x");
        long.lines = vec!["ü".repeat(10_000)];
        assert!(body(&slack(&long))["text"].as_str().unwrap().chars().count() <= 3_001);
        assert!(body(&discord(&long))["content"].as_str().unwrap().chars().count() <= 2_000);
        let post = ntfy(&long, "t", &FileSecret::of("https://ntfy.sh/t"), None);
        assert!(body(&post)["message"].as_str().unwrap().len() <= 3_500);
    }

    #[test]
    fn ntfy_gets_its_topic_from_the_address_or_the_recipient() {
        let (url, token) = (FileSecret::of("https://ntfy.sh/cohabit"), FileSecret::of("tk_1"));
        let post = ntfy(&named("a\nTitle: b"), "", &url, Some(&token));
        assert!(post.to_root);
        assert_eq!(post.headers, [("Authorization", "Bearer tk_1".to_owned())]);
        assert_eq!(body(&post)["topic"], "cohabit");
        assert_eq!(body(&post)["title"], "Job 1 a\\nTitle: b failed");
        assert_eq!(body(&ntfy(&named("x"), "cohabit-ada", &url, None))["topic"], "cohabit-ada");
    }

    #[test]
    fn mattermost_reaches_a_person_where_the_address_is_one() {
        assert_eq!(body(&mattermost(&named("x"), "@ada"))["channel"], "@ada");
        assert_eq!(body(&mattermost(&named("x"), "")).get("channel"), None);
    }
}
