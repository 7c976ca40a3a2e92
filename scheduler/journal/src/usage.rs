//! Curves of what ranks did with their GPUs, as the column `curve` of the history keeps them. They have one
//! form, which every version reads and writes.

use cohabit_types::UsageCurve;
use serde_with::de::DeserializeAsWrap;
use serde_with::ser::SerializeAsWrap;

use crate::error::JournalDecodeError;
use crate::stored::StoredUsageCurve;

/// The JSON of a curve.
///
/// # Errors
/// None that a curve can cause; serde's signature has one.
pub fn encode_curve(curve: &UsageCurve) -> serde_json::Result<String> {
    serde_json::to_string(&SerializeAsWrap::<UsageCurve, StoredUsageCurve>::new(curve))
}

/// The curve that this JSON stands for.
///
/// # Errors
/// If the text is none.
pub fn decode_curve(text: &str) -> Result<UsageCurve, JournalDecodeError> {
    Ok(serde_json::from_str::<DeserializeAsWrap<UsageCurve, StoredUsageCurve>>(text)?.into_inner())
}
