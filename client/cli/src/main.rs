//! The program `cohabit`. Its code is in the library of this crate, so that tests can reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    cohabit_cli::main()
}
