//! The ways of sharing a GPU that are compared, by the names that command lines and tables have for them.

use cohabit_proto::StretchSharing;

/// Every way, in the order in which they are told.
pub const ALL_SHARING: [StretchSharing; 3] =
    [StretchSharing::Exclusive, StretchSharing::TimeSliced, StretchSharing::Mps];

/// The name of a way.
#[must_use]
pub const fn sharing_word(sharing: StretchSharing) -> &'static str {
    match sharing {
        StretchSharing::Exclusive => "exclusive",
        StretchSharing::TimeSliced => "time-sliced",
        StretchSharing::Mps => "mps",
    }
}

/// The way with this name.
///
/// # Errors
/// The names that there are.
pub fn sharing_named(word: &str) -> Result<StretchSharing, String> {
    ALL_SHARING.into_iter().find(|sharing| sharing_word(*sharing) == word).ok_or_else(|| {
        format!("'{word}' is no way of sharing a GPU: there are {}", ALL_SHARING.map(sharing_word).join(", "))
    })
}
