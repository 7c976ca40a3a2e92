//! Prints the circles of modules of the crates whose `src` directories are given.
#![expect(clippy::print_stdout, reason = "it is a program for a terminal")]

use std::path::Path;
use std::process::ExitCode;

use cohabit_structure::{Crate, circles};

fn main() -> ExitCode {
    let mut broken = 0;
    for source in std::env::args().skip(1) {
        let root = ["lib.rs", "main.rs"].map(|name| Path::new(&source).join(name));
        let Some(root) = root.iter().find(|it| it.exists()) else {
            println!("{source}: no lib.rs or main.rs; give the `src` directory of a crate");
            return ExitCode::from(2);
        };
        let arrows = match Crate::read(root) {
            Ok(read) => read.arrows(),
            Err(error) => {
                println!("{error}");
                return ExitCode::from(2);
            }
        };
        for circle in circles(&arrows) {
            let refused = circle.files.len() > 2 || circle.folders().len() > 1;
            broken += usize::from(refused);
            println!("{source}: {} files{}", circle.files.len(), if refused { "" } else { " (allowed)" });
            for ((from, to), names) in &circle.arrows {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                println!("    {} -> {}: {}", from.display(), to.display(), names.join(", "));
            }
        }
    }
    ExitCode::from(u8::from(broken > 0))
}
