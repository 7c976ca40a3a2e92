//! Words of a command with placeholders: `--lr={lr}`. `{{` and `}}` stand for the braces themselves.

use serde_json::{Map, Value};

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// As it is.
    Text(String),
    /// The value of the parameter with this name.
    Parameter(String),
}

/// Whether this can be the name of a parameter: letters, digits, `_`, `-` and `.`, and a letter or `_` first.
#[must_use]
pub fn is_parameter_name(name: &str) -> bool {
    let starts = |first: char| first.is_ascii_alphabetic() || first == '_';
    name.starts_with(starts) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// The parts of a word.
///
/// # Errors
/// A brace that begins or ends no placeholder, in words for the person who wrote it.
pub fn template_parts(word: &str) -> Result<Vec<TemplatePart>, String> {
    let (mut parts, mut text) = (Vec::new(), String::new());
    let mut rest = word;
    while let Some(place) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(place);
        text.push_str(before);
        if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            text.push_str(&from[..1]);
            rest = after;
            continue;
        }
        let placeholder = from.strip_prefix('{').and_then(|it| it.split_once('}'));
        let Some((name, after)) = placeholder.filter(|(name, _)| is_parameter_name(name)) else {
            return Err(format!(
                "'{word}' has a brace that belongs to no placeholder such as {{lr}}: write {{{{ and }}}} for \
                 braces themselves"
            ));
        };
        if !text.is_empty() {
            parts.push(TemplatePart::Text(std::mem::take(&mut text)));
        }
        parts.push(TemplatePart::Parameter(name.to_owned()));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(TemplatePart::Text(text));
    }
    Ok(parts)
}

pub(crate) fn check_template(word: &str) -> Result<(), String> {
    template_parts(word).map(drop)
}

/// The word with the values of these parameters; a placeholder without one stays, as does a word that was
/// never checked.
#[must_use]
pub fn fill_template(word: &str, parameters: &Map<String, Value>) -> String {
    let Ok(parts) = template_parts(word) else { return word.to_owned() };
    let filled = parts.into_iter().map(|part| match part {
        TemplatePart::Text(text) => text,
        TemplatePart::Parameter(name) => match parameters.get(&name) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => format!("{{{name}}}"),
        },
    });
    filled.collect()
}

/// The parameters of an entry, if it is a JSON object.
#[must_use]
pub fn entry_parameters(entry: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(entry) {
        Ok(Value::Object(object)) => Some(object),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(word: &str) -> String {
        let parameters = entry_parameters(r#"{"lr":"1e-5","seed":3,"net.size":"a b"}"#).unwrap();
        fill_template(word, &parameters)
    }

    #[test]
    fn placeholders_become_values_anywhere_in_a_word() {
        assert_eq!(filled("--lr={lr}"), "--lr=1e-5");
        assert_eq!(filled("{seed}{lr}-{net.size}"), "31e-5-a b");
        assert_eq!(filled("{other}"), "{other}");
        assert_eq!(filled(""), "");
    }

    #[test]
    fn doubled_braces_stand_for_themselves() {
        assert_eq!(filled(r#"{{"lr": {lr}}}"#), r#"{"lr": 1e-5}"#);
        assert_eq!(filled("{{lr}}"), "{lr}");
        assert_eq!(template_parts("{{{lr}}}").unwrap().len(), 3);
    }

    #[test]
    fn other_braces_are_refused_with_the_way_to_write_them() {
        for word in ["{", "}", "{}", "{lr", "lr}", "{l r}", "{1}", "{\"a\": 1}", "${HOME}"] {
            let refused = template_parts(word);
            // A shell's ${HOME} reads as a placeholder that nobody fills.
            match word {
                "${HOME}" => assert!(refused.is_ok()),
                _ => assert!(refused.unwrap_err().contains("write {{ and }}"), "{word}"),
            }
        }
    }
}
