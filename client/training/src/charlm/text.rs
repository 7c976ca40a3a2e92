//! The text that comes with the program, as numbers of characters: most of it to learn, its end to be tested
//! on.
//!
//! The alphabet is made of the characters that occur, sorted, so it depends on nothing but the text.

use anyhow::{Context as _, Result, ensure};

const TEXT: &str = include_str!("../../data/alice.txt");
/// The last tenth of the text is kept for the test.
const TEST_PART: usize = 10;

/// A text in the numbers of its alphabet.
pub(super) struct Text {
    alphabet: Vec<char>,
    training: Vec<u32>,
    test: Vec<u32>,
}

impl Text {
    /// The text that comes with the program.
    pub(super) fn new() -> Result<Self> {
        let mut alphabet: Vec<char> = TEXT.chars().collect();
        alphabet.sort_unstable();
        alphabet.dedup();
        let mut training =
            TEXT.chars().map(|letter| number_of(&alphabet, letter)).collect::<Result<Vec<u32>>>()?;
        let test = training.split_off(training.len() - training.len() / TEST_PART);
        Ok(Self { alphabet, training, test })
    }

    /// How many different characters there are.
    pub(super) fn alphabet_size(&self) -> usize {
        self.alphabet.len()
    }

    /// The part to learn.
    pub(super) fn training(&self) -> &[u32] {
        &self.training
    }

    /// The part to be tested on.
    pub(super) fn test(&self) -> &[u32] {
        &self.test
    }

    /// The number of a character that occurs in the text.
    pub(super) fn number_of(&self, letter: char) -> Result<u32> {
        number_of(&self.alphabet, letter)
    }

    /// The character with this number.
    pub(super) fn letter(&self, number: u32) -> Result<char> {
        self.alphabet.get(number as usize).copied().context("no such character")
    }

    /// The loss of the best guess that knows only how frequent each character is, in nats for each of them.
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
    fn numbers_lead_back_to_the_text() {
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
