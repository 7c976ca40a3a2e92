//! Commands as they can be typed into a shell.

use std::fmt::Write as _;

/// The words, quoted where a shell would read them differently. A word with control characters is written as
/// `$'…'`, which bash, zsh and ksh read, so that the command stays in one line.
#[must_use]
pub fn quoted_command<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words = words.into_iter().enumerate();
    words.map(|(number, word)| quoted_word(word, number == 0)).collect::<Vec<_>>().join(" ")
}

fn quoted_word(word: &str, is_first: bool) -> String {
    // An equals sign means something only at the front of a word, and in what comes before a command.
    let has_value = !is_first && word.find('=').is_some_and(|at| at > 0);
    let without = word.replace('=', "");
    if has_value && shlex::try_quote(&without).is_ok_and(|quoted| quoted == without) {
        return word.to_owned();
    }
    match shlex::try_quote(word) {
        Ok(quoted) if !word.contains(char::is_control) => quoted.into_owned(),
        Ok(_) | Err(_) => with_escapes(word),
    }
}

fn with_escapes(word: &str) -> String {
    let mut quoted = String::from("$'");
    for letter in word.chars() {
        match letter {
            '\\' | '\'' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Octal: hexadecimal digits that follow would be read as a part of the code.
            other if other.is_control() => {
                let mut bytes = [0; 4];
                other.encode_utf8(&mut bytes).bytes().for_each(|byte| _ = write!(quoted, "\\{byte:03o}"));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (words, quoted) in [
            (&["python", "train.py", "--lr=0.1"][..], "python train.py --lr=0.1"),
            (&["python", "-c", "print(\"a b\")"], "python -c 'print(\"a b\")'"),
            (&["A=1", "=ls", "A=1"], "'A=1' '=ls' A=1"),
            (&["echo", ""], "echo ''"),
            (&["echo", "it's"], "echo \"it's\""),
            (&["echo", "$HOME", "~", "*"], "echo '$HOME' '~' '*'"),
            (&["sh", "-c", "a\nb\t'\\"], "sh -c $'a\\nb\\t\\'\\\\'"),
            (&["a\u{7}1"], "$'a\\0071'"),
        ] {
            assert_eq!(quoted_command(words.iter().copied()), quoted);
        }
    }

    #[test]
    fn a_shell_reads_the_same_words() {
        if Command::new("bash").arg("--version").output().is_err() {
            return;
        }
        let words =
            ["a b", "it's", "\"$x\"", "\\", "a\nb'\u{1b}0\u{85}1", "#!*?[~]{1,2}", "größe", "=x", "^!h"];
        let command = format!("printf '%s\\0' {}", quoted_command(words));
        let output = Command::new("bash").args(["-c", &command]).output().unwrap();
        let read: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().split_terminator('\0').collect();
        assert_eq!(read, words, "{command}");
    }
}
