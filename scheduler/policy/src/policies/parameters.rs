//! The parameters of a policy as users write them: `key=value` pairs after a colon, separated by commas.
//!
//! A policy takes its parameters one by one; what is left over is refused with a list of what it takes. No
//! policy is known here.

use std::str::FromStr;

use super::parse_error::PolicyParseError;

/// The parameters of one policy that it has not taken yet.
#[derive(Debug)]
pub(super) struct Parameters<'t> {
    policy: &'t str,
    left: Vec<(&'t str, &'t str)>,
    /// Every key that the policy asked for.
    keys: Vec<&'static str>,
}

impl<'t> Parameters<'t> {
    /// Splits a text like `las:quantum=60,queues=3` into the name and the parameters.
    pub(super) fn parse(text: &'t str) -> Result<(&'t str, Parameters<'t>), PolicyParseError> {
        let (policy, rest) = text.split_once(':').unwrap_or((text, ""));
        let policy = policy.trim();
        let mut parameters = Parameters { policy, left: Vec::new(), keys: Vec::new() };
        for written in rest.split(',').map(str::trim).filter(|written| !written.is_empty()) {
            let (key, value) = written.split_once('=').ok_or_else(|| PolicyParseError::Syntax {
                policy: policy.to_owned(),
                written: written.to_owned(),
            })?;
            parameters.left.push((key.trim(), value.trim()));
        }
        Ok((policy, parameters))
    }

    /// The value of a parameter as it is written; the last one, if it is given more than once.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'t str> {
        self.keys.push(key);
        let value = self.left.iter().rev().find(|(given, _)| *given == key).map(|(_, value)| *value);
        self.left.retain(|(given, _)| *given != key);
        value
    }

    /// The value of a parameter that has to pass a test.
    pub(super) fn read<T: FromStr>(
        &mut self,
        key: &'static str,
        allowed: &str,
        test: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, PolicyParseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let read = value.parse().ok().filter(test);
        read.map(Some).ok_or_else(|| self.refuse(format!("{key} is '{value}': use {allowed}")))
    }

    /// The value of a parameter that is one of several words.
    pub(super) fn choose<T: Clone>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, PolicyParseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let chosen = choices.iter().find(|(word, _)| *word == value).map(|(_, choice)| choice.clone());
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        chosen.map(Some).ok_or_else(|| self.refuse(format!("{key} is '{value}': use {}", words.join(" or "))))
    }

    /// The error for a value that is not allowed.
    pub(super) fn refuse(&self, why: String) -> PolicyParseError {
        PolicyParseError::Value { policy: self.policy.to_owned(), why }
    }

    /// Refuses parameters that the policy did not take.
    pub(super) fn finish(self) -> Result<(), PolicyParseError> {
        match self.left.first() {
            None => Ok(()),
            Some((key, _)) => Err(PolicyParseError::key(self.policy, key, &self.keys)),
        }
    }
}
