//! The program `cohabit`; all of it is in the library beside it, so that tests can reach its parts.

use std::process::ExitCode;

fn main() -> ExitCode {
    cohabit::main()
}
