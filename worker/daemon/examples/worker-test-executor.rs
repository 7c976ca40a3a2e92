//! The executor that the tests of the daemon start: `worker-test-executor executor DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cohabit_executor::executor()
}
