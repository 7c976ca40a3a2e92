//! `--env`: an environment variable of the job, given in full or copied from the submitter's environment.

/// An environment variable as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvArgument {
    /// `NAME=VALUE`.
    Set(String, String),
    /// `NAME`: with the value that it has in the submitter's environment.
    Inherit(String),
}

/// Parses `NAME=VALUE` or `NAME`.
pub fn parse_variable(text: &str) -> Result<EnvArgument, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if name.is_empty() {
        return Err(format!("'{text}' has no variable name: write NAME=VALUE, or NAME to copy its value"));
    }
    Ok(match value {
        Some(value) => EnvArgument::Set(name.to_owned(), value.to_owned()),
        None => EnvArgument::Inherit(name.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_contain_any_characters() {
        assert_eq!(parse_variable("A=b=c "), Ok(EnvArgument::Set("A".into(), "b=c ".into())));
        assert_eq!(parse_variable("A="), Ok(EnvArgument::Set("A".into(), String::new())));
        assert_eq!(parse_variable("A"), Ok(EnvArgument::Inherit("A".into())));
        assert!(parse_variable("=x").is_err());
    }
}
