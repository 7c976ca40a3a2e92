//! The executor that the tests of the daemon start, as `worker-test-executor executor DIR`, and what reads
//! files for copies, as `worker-test-executor copy-reader`.

use std::env;
use std::process::ExitCode;

use cohabit_host::copy_task::COPY_READER;

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some(COPY_READER) => cohabit_executor::copy_reader(),
        Some(_) | None => cohabit_executor::executor(),
    }
}
