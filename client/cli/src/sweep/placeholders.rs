//! Compares the placeholders of a command with the parameters of a sweep.

use std::collections::BTreeSet;

use cohabit_client::types::{TemplatePart, template_parts};

/// Refuses a placeholder that no parameter fills, and a parameter that no placeholder uses.
pub(crate) fn check_placeholders(command: &[String], parameters: &BTreeSet<&str>) -> Result<(), String> {
    let mut used = BTreeSet::new();
    for word in command {
        for part in template_parts(word)? {
            match part {
                TemplatePart::Parameter(name) => drop(used.insert(name)),
                TemplatePart::Text(_) => {}
            }
        }
    }
    if let Some(name) = used.iter().find(|name| !parameters.contains(name.as_str())) {
        return Err(format!(
            "no parameter fills {{{name}}} in the command: give it values, or write {{{{{name}}}}} for the text \
             {{{name}}} itself"
        ));
    }
    match parameters.iter().find(|name| !used.contains(**name)) {
        Some(name) => Err(format!(
            "the command does not use the parameter '{name}': write {{{name}}} where its value belongs, or leave it \
             out"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &[&str], parameters: &[&str]) -> Result<(), String> {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        check_placeholders(&command, &parameters.iter().copied().collect())
    }

    #[test]
    fn every_placeholder_has_a_parameter_and_every_parameter_a_placeholder() {
        assert_eq!(check(&["train", "--lr={lr}", "{seed}-{lr}", "{{x}}"], &["lr", "seed"]), Ok(()));
        let unfilled = check(&["train", "{lr}", "{sed}"], &["lr"]).unwrap_err();
        assert!(unfilled.contains("no parameter fills {sed}") && unfilled.contains("{{sed}}"), "{unfilled}");
        let unused = check(&["train", "{lr}"], &["lr", "seed"]).unwrap_err();
        assert!(unused.contains("does not use the parameter 'seed'"), "{unused}");
        assert!(check(&["train", "{\"a\": {lr}}"], &["lr"]).unwrap_err().contains("{{"));
    }
}
