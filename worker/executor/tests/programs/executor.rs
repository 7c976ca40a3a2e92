//! The executor that the tests of this crate start: `cohabit-test-executor executor DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cohabit_executor::executor()
}
