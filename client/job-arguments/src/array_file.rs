//! `--each-line` and `--from-json`: a file with an entry for each member of an array.

use std::fs::File;
use std::io::{Read, Take};
use std::path::Path;

use cohabit_client::types::{Array, Bytes, LONGEST_ENTRY};
use cohabit_console::CommandError;
use serde_json::Value;

use crate::arguments::JobArguments;

/// The largest file. The head allows less for one job, and says how much.
const MAX_BYTES: Bytes = Bytes(16 << 20);

/// The array that the flags describe, and the entries of its members.
pub(crate) fn array(job: &JobArguments, folder: &Path) -> Result<(Option<Array>, Vec<String>), CommandError> {
    let entries = match (&job.each_line, &job.from_json) {
        (None, None) => return Ok((without_entries(job)?, Vec::new())),
        (Some(file), _) => lines(file, &text_of("--each-line", file, folder)?)?,
        (None, Some(file)) => elements(file, &text_of("--from-json", file, folder)?)?,
    };
    let last = entries.len().checked_sub(1).and_then(|last| u32::try_from(last).ok());
    let last = last.ok_or_else(|| {
        let file = job.each_line.as_ref().or(job.from_json.as_ref()).map_or(Path::new(""), |file| file);
        CommandError::invalid(format!("{} has no entries: give at least one", file.display()))
    })?;
    Ok((Some(Array { at_once: job.at_once, ..Array::from(0..=last) }), entries))
}

fn without_entries(job: &JobArguments) -> Result<Option<Array>, CommandError> {
    match (&job.array, job.at_once) {
        (Some(array), Some(limit)) => Ok(Some(Array { at_once: Some(limit), ..array.clone() })),
        (None, Some(_)) => Err(CommandError::invalid(
            "--at-once limits the members of an array: give --array, --each-line or --from-json as well",
        )),
        (array, None) => Ok(array.clone()),
    }
}

fn text_of(flag: &str, file: &Path, folder: &Path) -> Result<String, CommandError> {
    let refuse = |why: String| CommandError::invalid(format!("{flag} {}: {why}", file.display()));
    let unreadable = |error: std::io::Error| refuse(format!("cannot be read: {error}"));
    let open = File::open(folder.join(file)).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let mut limited: Take<File> = open.take(MAX_BYTES.0 + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES.0 {
        return Err(refuse(format!(
            "is larger than {MAX_BYTES}: put the data into files and their names into the entries"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|it| **it == b'\n').count();
        refuse(format!("line {} is not valid UTF-8: convert the file", line + 1))
    })
}

/// The lines that are not blank.
fn lines(file: &Path, text: &str) -> Result<Vec<String>, CommandError> {
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines.map(|(line, number)| entry(file, line.to_owned(), &format!("line {number}"))).collect()
}

/// The elements of an array, each as compact JSON.
fn elements(file: &Path, text: &str) -> Result<Vec<String>, CommandError> {
    let refuse = |why: String| CommandError::invalid(format!("--from-json {}: {why}", file.display()));
    let found: Value = serde_json::from_str(text).map_err(|error| refuse(format!("is not JSON: {error}")))?;
    let Value::Array(elements) = found else {
        return Err(refuse(
            "is not an array: write [ELEMENT, ELEMENT, …], with an element for each member".into(),
        ));
    };
    let each = elements.iter().zip(0..);
    each.map(|(element, index)| entry(file, element.to_string(), &format!("element {index}"))).collect()
}

fn entry(file: &Path, text: String, place: &str) -> Result<String, CommandError> {
    let refuse = |why: String| Err(CommandError::invalid(format!("{}: {place} {why}", file.display())));
    match text.len() {
        _ if text.contains('\0') => refuse("contains a NUL character: remove it".into()),
        0..=LONGEST_ENTRY => Ok(text),
        length => refuse(format!(
            "has {length} bytes, and at most {LONGEST_ENTRY} are allowed: put the data into files and their names \
             into the entries"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn array_of(
        change: impl Fn(&mut JobArguments),
        content: &[u8],
    ) -> Result<(Option<Array>, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("in"), content).unwrap();
        let mut job = JobArguments::default();
        change(&mut job);
        array(&job, folder.path()).map_err(|error| error.message)
    }

    fn by_line(content: &[u8]) -> Result<(Option<Array>, Vec<String>), String> {
        array_of(|job| job.each_line = Some("in".into()), content)
    }

    fn by_element(content: &str) -> Result<(Option<Array>, Vec<String>), String> {
        array_of(|job| job.from_json = Some("in".into()), content.as_bytes())
    }

    #[test]
    fn every_line_that_is_not_blank_is_a_member() {
        let (array, entries) = by_line(b"a b\r\n\n  \n c\nlast").unwrap();
        assert_eq!(entries, ["a b", " c", "last"]);
        assert_eq!(array, Some(Array::from(0..=2)));
        let limit = |job: &mut JobArguments| (job.each_line, job.at_once) = (Some("in".into()), Some(2));
        assert_eq!(array_of(limit, b"a\nb\n").unwrap().0.unwrap().at_once, Some(2));
    }

    #[test]
    fn every_element_is_a_member_in_compact_form() {
        let (_, entries) = by_element("[ {\"lr\": 0.1,\n \"b\": [1, 2]}, 3, \"x\" ]").unwrap();
        assert_eq!(entries, [r#"{"b":[1,2],"lr":0.1}"#, "3", r#""x""#]);
    }

    #[test]
    fn bad_files_are_refused_with_the_place() {
        assert!(by_line(b"\n\n").unwrap_err().contains("has no entries"));
        assert!(by_line(b"a\n\xff\n").unwrap_err().contains("line 2 is not valid UTF-8"));
        assert!(by_line(b"a\nb\0\n").unwrap_err().contains("in: line 2 contains a NUL"));
        let long = [b"a\n".to_vec(), vec![b'x'; LONGEST_ENTRY + 1]].concat();
        assert!(by_line(&long).unwrap_err().contains("line 2 has 65537 bytes"));
        let large = vec![b'\n'; MAX_BYTES.0 as usize + 1];
        assert!(by_line(&large).unwrap_err().contains("larger than 16 MiB"));
        assert!(by_element("{}").unwrap_err().contains("is not an array"));
        assert!(by_element("[1,\n2").unwrap_err().contains("line 2 column 1"));
        assert!(by_element("[]").unwrap_err().contains("has no entries"));
        let missing = array_of(|job| job.each_line = Some("no".into()), b"").unwrap_err();
        assert!(missing.contains("--each-line no: cannot be read"), "{missing}");
        assert!(array_of(|job| job.at_once = Some(1), b"").unwrap_err().contains("--each-line or"));
    }
}
