//! `--export`: which variables of the submitter's environment a job gets, as in Slurm.

use super::variable::{EnvArgument, parse_variable};

/// Which variables are copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportArgument {
    pub base: ExportBase,
    /// Variables on top of them. One that is copied and not set is left out, as in Slurm.
    pub variables: Vec<EnvArgument>,
}

/// What is copied besides the named variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportBase {
    /// The whole environment.
    All,
    /// Nothing, not even the search path.
    Nothing,
}

/// Parses `ALL`, `NONE`, `A,B=1`, `ALL,A='x,y'`.
pub fn parse_export(text: &str) -> Result<ExportArgument, String> {
    let mut export = ExportArgument { base: ExportBase::Nothing, variables: Vec::new() };
    for item in items(text) {
        match item.as_str() {
            "" => {}
            "ALL" => export.base = ExportBase::All,
            "NONE" | "NIL" => {}
            variable => export.variables.push(parse_variable(variable)?),
        }
    }
    Ok(export)
}

/// The parts between commas that are not in quotation marks, without these.
fn items(text: &str) -> Vec<String> {
    let (mut items, mut quoted_by) = (vec![String::new()], None);
    for letter in text.chars() {
        let item = items.last_mut().expect("there is one");
        match quoted_by {
            Some(mark) if letter == mark => quoted_by = None,
            None if letter == '\'' || letter == '"' => quoted_by = Some(letter),
            None if letter == ',' => items.push(String::new()),
            Some(_) | None => item.push(letter),
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> EnvArgument {
        EnvArgument::Set(name.into(), value.into())
    }

    #[test]
    fn lists_of_slurm_are_read() {
        let export = |base, variables| Ok(ExportArgument { base, variables });
        assert_eq!(parse_export("ALL"), export(ExportBase::All, vec![]));
        assert_eq!(parse_export("NONE"), export(ExportBase::Nothing, vec![]));
        let inherited = EnvArgument::Inherit("B".into());
        assert_eq!(parse_export("A=1,B"), export(ExportBase::Nothing, vec![set("A", "1"), inherited]));
        let quoted = export(ExportBase::All, vec![set("A", "x,y"), set("C", "it's")]);
        assert_eq!(parse_export("ALL,A='x,y',C=\"it's\""), quoted);
        assert!(parse_export("ALL,=1").is_err());
    }
}
