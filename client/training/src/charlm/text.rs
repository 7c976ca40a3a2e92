//! The text of `charlm`, encoded as character indices and split into a training and a test part.
//!
//! The alphabet is the sorted set of the characters in the text, so it depends only on the text.

use anyhow::{Context as _, Result, ensure};

const TEXT: &str = include_str!("../../data/alice.txt");
/// The last tenth of the text is the test part.
const TEST_PART: usize = 10;

/// The encoded text.
pub(super) struct Text {
    alphabet: Vec<char>,
    training: Vec<u32>,
    test: Vec<u32>,
}

impl Text {
    /// Encodes and splits the text.
    pub(super) fn new() -> Result<Self> {
        let mut alphabet: Vec<char> = TEXT.chars().collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let mut training =
            TEXT.chars().map(|letter| number_of(&alphabet, letter)).collect::<Result<Vec<u32>>>()?;
        let test = training.split_off(training.len() - training.len() / TEST_PART);
        Ok(Self { alphabet, training, test })
    }

    /// The number of different characters.
    pub(super) fn alphabet_size(&self) -> usize {
        self.alphabet.len()
    }

    /// The training part.
    pub(super) fn training(&self) -> &[u32] {
        &self.training
    }

    /// The test part.
    pub(super) fn test(&self) -> &[u32] {
        &self.test
    }

    /// The index of a character in the alphabet.
    pub(super) fn number_of(&self, letter: char) -> Result<u32> {
        number_of(&self.alphabet, letter)
    }

    /// The character with this index.
    pub(super) fn letter(&self, number: u32) -> Result<char> {
        self.alphabet.get(number as usize).copied().context("no such character")
    }

    /// The loss of guessing by character frequency alone, in nats per character.
    pub(super) fn unigram_entropy(&self) -> f64 {
        let mut counts = vec![0u32; self.alphabet.len()];
        self.training.iter().for_each(|number| counts[*number as usize] += 1);
        let total = self.training.len() as f64;
        let parts = counts.into_iter().filter(|count| *count > 0).map(|count| f64::from(count) / total);
        parts.map(|part| -part * part.ln()).sum()
    }
}

fn number_of(alphabet: &[char], letter: char) -> Result<u32> {
    let position = alphabet.binary_search(&letter);
    ensure!(position.is_ok(), "the character {letter:?} is not in the text");
    Ok(position.unwrap_or_default() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_gives_back_the_text() {
        let text = Text::new().unwrap();
        let numbers = text.training().iter().chain(text.test());
        assert_eq!(numbers.map(|number| text.letter(*number).unwrap()).collect::<String>(), TEXT);
        assert!(text.number_of('語').is_err());
    }

    #[test]
    fn the_unigram_entropy_is_that_of_english() {
        let text = Text::new().unwrap();
        let entropy = text.unigram_entropy();
        assert!((2.7..3.4).contains(&entropy) && entropy < (text.alphabet_size() as f64).ln(), "{entropy}");
    }
}
