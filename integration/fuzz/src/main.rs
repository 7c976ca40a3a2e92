//! libFuzzer on one target: `run` says how to build and start it.
#![no_main]

use cohabit_fuzz::FuzzTarget;
use libfuzzer_sys::fuzz_target;

/// The target is chosen at build time, so that nothing else is linked: libFuzzer scans the counters of the
/// whole program after each execution, which would take longer than most targets do.
const TARGET: FuzzTarget = FuzzTarget::named(env!("COHABIT_FUZZ_TARGET", "which target? `run` sets it"));

fuzz_target!(|bytes: &[u8]| TARGET.check(bytes));
