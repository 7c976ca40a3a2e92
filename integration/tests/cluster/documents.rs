//! Every command that the documentation shows exists.

use std::path::Path;

use crate::kit::*;

/// Commands in the indented or fenced code of a document, from `cohabit` on.
fn commands(text: &str) -> Vec<Vec<String>> {
    let code = text.lines().map(|line| line.trim().trim_start_matches("$ "));
    let ours = code.filter_map(|line| {
        let rest = line.strip_prefix("cohabit ").or_else(|| line.strip_prefix("cargo run --release -- "))?;
        Some(rest.split_whitespace().map(str::to_owned).collect())
    });
    ours.collect()
}

#[test]
fn every_command_of_the_documentation_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut seen = 0;
    for document in ["README.md", "docs/OPERATIONS.md", "docs/SWEEPS.md"] {
        for words in commands(&std::fs::read_to_string(root.join(document)).unwrap()) {
            let of_sweep = words[0] == "sweep" && ["show", "resume"].contains(&words[1].as_str());
            let nested = of_sweep || ["head", "worker", "token"].contains(&words[0].as_str());
            let verb: Vec<&str> = words.iter().take(if nested { 2 } else { 1 }).map(String::as_str).collect();
            let ran = CommandOutput::from(cohabit(root).args(&verb).arg("--help").output().unwrap());
            assert_eq!(ran.code, 0, "{document} shows `cohabit {}`: {}", words.join(" "), ran.stderr);
            let flags = words.iter().take_while(|word| *word != "--").filter(|word| word.starts_with("--"));
            for flag in flags.map(|flag| flag.split('=').next().unwrap()) {
                assert!(
                    ran.stdout.contains(flag),
                    "{document} shows `cohabit {}`, which has no {flag}",
                    words.join(" ")
                );
            }
            seen += 1;
        }
    }
    assert!(seen >= 20, "the documentation shows {seen} commands");
}
