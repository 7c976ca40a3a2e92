//! A program that is nothing but an executor: `cohabit-test-executor executor DIR`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = std::env::args_os().nth(2).expect("the folder of a rank");
    cohabit_worker::executor(Path::new(&folder))
}
