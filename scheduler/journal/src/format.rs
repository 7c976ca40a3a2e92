//! The number of the newest format.

/// The format that [`encode_event`](crate::encode_event) and [`encode_head`](crate::encode_head) write.
pub const FORMAT: u32 = 6;
