//! What the driver's critical errors mean: Xid numbers, by NVIDIA's Xid catalogue
//! (<https://docs.nvidia.com/deploy/xid-errors/>).

/// What follows from a critical error of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// A program's error, or one that the GPU has dealt with: it is only remembered.
    Noted,
    /// Nothing new may start on the GPU until somebody has looked after it.
    Fences,
    /// The same, and what runs there is lost.
    Loses,
}

/// How bad the error with this number is, and what it says.
pub(crate) const fn classify(code: u64) -> (Severity, &'static str) {
    match code {
        13 => (Severity::Noted, "an engine of the GPU raised an exception"),
        31 => (Severity::Noted, "a program reached for memory that is not its own"),
        43 => (Severity::Noted, "a program was stopped after its own error"),
        45 => (Severity::Noted, "a program's work was cleared away after it ended"),
        48 => (Severity::Fences, "memory error that could not be corrected"),
        63 => (Severity::Noted, "a bad row of memory is put out of use"),
        64 => (Severity::Fences, "a bad row of memory could not be put out of use"),
        74 => (Severity::Fences, "NVLink error"),
        79 => (Severity::Loses, "the GPU has fallen off the bus"),
        94 => (Severity::Noted, "memory error that was contained to one program"),
        95 => (Severity::Fences, "memory error that was not contained"),
        _ => (Severity::Noted, "an error that NVIDIA's Xid catalogue explains"),
    }
}

/// For people: `Xid 79, the GPU has fallen off the bus`.
pub(crate) fn describe(code: u64) -> String {
    format!("Xid {code}, {}", classify(code).1)
}
