//! Documents of `code` for scripts.

use cohabit_client::types::{ContentHash, JobId};
use serde::Serialize;

use crate::code_changes::{ChangeKind, FileChange};

/// `{"id", "snapshot", "folder", "against", "files": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct CodeComparisonDocument {
    pub(crate) id: JobId,
    pub(crate) snapshot: ContentHash,
    pub(crate) folder: String,
    pub(crate) against: String,
    pub(crate) files: Vec<FileChangeDocument>,
}

/// `{"path", "change"}`
#[derive(Debug, Serialize)]
pub(crate) struct FileChangeDocument {
    path: String,
    change: &'static str,
}

/// `{"id", "snapshot", "extracted"}`
#[derive(Debug, Serialize)]
pub(crate) struct ExtractedCodeDocument {
    pub(crate) id: JobId,
    pub(crate) snapshot: ContentHash,
    pub(crate) extracted: String,
}

impl From<&FileChange> for FileChangeDocument {
    fn from(change: &FileChange) -> FileChangeDocument {
        let word = match change.kind() {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Modified => "modified",
            ChangeKind::Mode => "mode",
            ChangeKind::Link => "link",
        };
        FileChangeDocument { path: change.path.clone(), change: word }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::FileContent;
    use cohabit_console::with_schema;

    use super::*;

    #[test]
    fn the_document_of_a_comparison_is_the_contract() {
        let after = Some(FileContent::Link("1.ckpt".into()));
        let change = FileChange { path: "latest".into(), before: None, after };
        let document = CodeComparisonDocument {
            id: JobId::new(12),
            snapshot: ContentHash([0xab; 32]),
            folder: "/home/ada/net".into(),
            against: "/tmp/net".into(),
            files: vec![FileChangeDocument::from(&change)],
        };
        let expected = format!(
            r#"{{"schema":1,"id":"12","snapshot":"{}","folder":"/home/ada/net","against":"/tmp/net","files":[{{"path":"latest","change":"added"}}]}}"#,
            "ab".repeat(32)
        );
        assert_eq!(serde_json::to_string(&with_schema(document)).unwrap(), expected);
    }
}
