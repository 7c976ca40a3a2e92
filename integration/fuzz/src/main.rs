//! libFuzzer on one target: `run` says how to build and start it.
#![no_main]

use std::sync::OnceLock;

use cohabit_fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

/// Which target; `run` sets it.
const NAME: &str = "COHABIT_FUZZ_TARGET";

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| TARGET.get_or_init(chosen).check(bytes));

fn chosen() -> &'static Target {
    let name = std::env::var(NAME).unwrap_or_default();
    let found = TARGETS.iter().find(|target| target.name == name);
    let known = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
    found.unwrap_or_else(|| panic!("{NAME} is '{name}', which is no target: there are {}", known()))
}
