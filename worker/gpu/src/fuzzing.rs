//! What must hold of the logs of MPS servers, for `integration/fuzz`.

/// Panics where what such a log tells of faults makes no sense, whatever is in it.
pub fn server_log(text: &[u8]) {
    crate::mps::fuzzing::tells_of_faults(text);
}
