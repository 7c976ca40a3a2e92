//! The meaning of the driver's critical errors: Xid codes, from NVIDIA's Xid catalogue
//! (<https://docs.nvidia.com/deploy/xid-errors/>).

/// The consequence of a critical error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// An error of a program, or one that the GPU has handled: it is only noted.
    Noted,
    /// Nothing new may start on the GPU until an operator has repaired it.
    Fences,
    /// The same, and what runs on it is lost.
    Loses,
}

/// The severity and the meaning of this Xid code.
pub(crate) const fn classify(code: u64) -> (Severity, &'static str) {
    match code {
        13 => (Severity::Noted, "an engine of the GPU raised an exception"),
        31 => (Severity::Noted, "a program accessed memory that is not its own"),
        43 => (Severity::Noted, "a program was stopped after its own error"),
        45 => (Severity::Noted, "the work of a program was removed after it ended"),
        48 => (Severity::Fences, "uncorrectable memory error"),
        63 => (Severity::Noted, "a bad memory row is being remapped"),
        64 => (Severity::Fences, "a bad memory row could not be remapped"),
        74 => (Severity::Fences, "NVLink error"),
        79 => (Severity::Loses, "the GPU has fallen off the bus"),
        94 => (Severity::Noted, "memory error contained to one program"),
        95 => (Severity::Fences, "uncontained memory error"),
        119 | 120 => (Severity::Fences, "the GPU's system processor does not answer or has failed"),
        154 => (Severity::Fences, "the GPU asks for a reset, a reboot or a repair"),
        _ => (Severity::Noted, "an error that NVIDIA's Xid catalogue explains"),
    }
}

/// For people: `Xid 79, the GPU has fallen off the bus`.
pub(crate) fn describe(code: u64) -> String {
    format!("Xid {code}, {}", classify(code).1)
}
