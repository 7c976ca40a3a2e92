//! Properties of the parser of MPS server logs, for `integration/fuzz`.

/// Panics if the faults that are read from this text, which may be anything, are inconsistent.
pub fn server_log(text: &[u8]) {
    crate::mps::fuzzing::check_faults(text);
}
