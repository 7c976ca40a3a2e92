//! Values of parameters: as they were written where that matters, as numbers where that loses nothing.

use serde_json::{Number, Value};

/// The longest value, in bytes: lists of jobs show parameters in full up to about this length.
const LONGEST_VALUE: usize = 200;

/// The value that a text stands for: a number that is printed as it was written, or the text.
pub(crate) fn value_of(text: &str) -> Result<Value, String> {
    if text.len() > LONGEST_VALUE {
        return Err(format!(
            "a value has {} bytes, and at most {LONGEST_VALUE} are allowed: put it into a file and its name here",
            text.len()
        ));
    }
    if text.contains('\0') {
        return Err("a value contains a NUL character: remove it".to_owned());
    }
    let number = text.parse::<Number>().ok().filter(|number| number.to_string() == text);
    Ok(number.map_or_else(|| Value::String(text.to_owned()), Value::Number))
}

/// A drawn number: with six significant digits, which are enough for a parameter and can be read.
pub(crate) fn rounded(number: f64) -> Value {
    let short = format!("{number:.5e}").parse().unwrap_or(number);
    let whole = (short as i64) as f64 == short && short.abs() < 1e15;
    let number = if whole { Some(Number::from(short as i64)) } else { Number::from_f64(short) };
    number.map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_stays_as_it_is_written() {
        for (text, is_number) in [("0.1", true), ("3", true), ("-2", true), ("1e-5", false), ("007", false)] {
            let value = value_of(text).unwrap();
            assert_eq!(value.is_number(), is_number, "{text}");
            assert_eq!(value.as_str().map_or_else(|| value.to_string(), str::to_owned), text);
        }
        for text in ["0.10", "1E-5", "", "adam", "true", "[1]", "1_000"] {
            assert_eq!(value_of(text).unwrap(), Value::String(text.to_owned()));
        }
        assert!(value_of(&"x".repeat(201)).unwrap_err().contains("201 bytes"));
    }

    #[test]
    fn drawn_numbers_have_six_digits() {
        let texts = [0.1 + 0.2, 1.0 / 3.0, 123_456_789.0, 1e-5, 2.0].map(|it| rounded(it).to_string());
        assert_eq!(texts, ["0.3", "0.333333", "123457000", "0.00001", "2"]);
    }
}
