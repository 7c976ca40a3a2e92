//! Properties that must hold for stored agents from untrusted input, for `integration/fuzz`.

use std::path::Path;

use super::stored_agents::{AgentsCard, StoredAgents, digest};

/// Stored agents: their card and, after a NUL byte, their weights, which count as those of the card. An
/// error names its file.
///
/// # Panics
/// If the property is violated.
pub fn stored_agents(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (card, weights) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let loaded = AgentsCard::of(card, "card.json".into()).and_then(|mut card| {
        card.digest = digest(weights);
        StoredAgents::of(card, weights, "agents.safetensors".into(), Path::new("card.json"))
    });
    if let Err(error) = loaded {
        let text = error.to_string();
        assert!(text.contains("card.json") || text.contains("agents.safetensors"), "{text}");
    }
}
