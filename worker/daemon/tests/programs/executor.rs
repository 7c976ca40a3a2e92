//! A program that is nothing but an executor: `cohabit-test-executor executor DIR`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cohabit_worker_daemon::executor()
}
