//! How the files of two folders differ, by their lists alone.

use cohabit_client::{FileContent, Manifest};

/// A file that is not the same in both folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    /// Below the folder.
    pub(crate) path: String,
    pub(crate) before: Option<FileContent>,
    pub(crate) after: Option<FileContent>,
}

/// In which way a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Removed,
    Modified,
    /// Only whether it may be executed.
    Mode,
    /// The target of a link, or whether it is one.
    Link,
}

/// The files that differ, sorted by path.
pub(crate) fn compare(before: &Manifest, after: &Manifest) -> Vec<FileChange> {
    let gone = before.files().iter().filter_map(|file| {
        let now = after.file(&file.path);
        (now != Some(&file.content)).then(|| FileChange {
            path: file.path.clone(),
            before: Some(file.content.clone()),
            after: now.cloned(),
        })
    });
    let new = after.files().iter().filter(|file| before.file(&file.path).is_none()).map(|file| FileChange {
        path: file.path.clone(),
        before: None,
        after: Some(file.content.clone()),
    });
    let mut changes: Vec<FileChange> = gone.chain(new).collect();
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}

impl FileChange {
    /// In which way it differs.
    pub(crate) fn kind(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            (Some(FileContent::Link(_)), _) | (_, Some(FileContent::Link(_))) => ChangeKind::Link,
            (
                Some(FileContent::Stored { hash: before, .. }),
                Some(FileContent::Stored { hash: after, .. }),
            ) => {
                if before == after {
                    ChangeKind::Mode
                } else {
                    ChangeKind::Modified
                }
            }
        }
    }

    /// A file that became a link, or a link that became a file, as one that is removed and one that is added.
    pub(crate) fn into_parts(self) -> Vec<FileChange> {
        let is_link = |content: &FileContent| matches!(content, FileContent::Link(_));
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if is_link(before) != is_link(after) => {
                let removed = FileChange { after: None, ..self.clone() };
                vec![removed, FileChange { before: None, ..self }]
            }
            _ => vec![self],
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::ContentHash;
    use cohabit_client::{FileSelection, ManifestFile};

    use super::*;

    fn stored(content: u8, is_executable: bool) -> FileContent {
        FileContent::Stored { hash: ContentHash([content; 32]), size: 1, is_executable }
    }

    fn link(target: &str) -> FileContent {
        FileContent::Link(target.into())
    }

    fn folder(files: &[(&str, FileContent)]) -> Manifest {
        let file = |(path, content): &(&str, FileContent)| ManifestFile {
            path: (*path).to_owned(),
            content: content.clone(),
        };
        Manifest::new(FileSelection::All, files.iter().map(file).collect()).unwrap()
    }

    #[test]
    fn each_file_that_differs_is_one_change() {
        let before = folder(&[
            ("edited", stored(1, false)),
            ("gone", stored(2, false)),
            ("latest", link("1.ckpt")),
            ("run.sh", stored(3, false)),
            ("same", stored(4, true)),
            ("was-file", stored(5, false)),
        ]);
        let after = folder(&[
            ("edited", stored(9, true)),
            ("latest", link("2.ckpt")),
            ("new", stored(6, false)),
            ("run.sh", stored(3, true)),
            ("same", stored(4, true)),
            ("was-file", link("x")),
        ]);
        let changes = compare(&before, &after);
        let kinds: Vec<_> = changes.iter().map(|change| (change.path.as_str(), change.kind())).collect();
        assert_eq!(
            kinds,
            [
                ("edited", ChangeKind::Modified),
                ("gone", ChangeKind::Removed),
                ("latest", ChangeKind::Link),
                ("new", ChangeKind::Added),
                ("run.sh", ChangeKind::Mode),
                ("was-file", ChangeKind::Link),
            ]
        );
        let parts: Vec<_> = changes.into_iter().map(|change| change.into_parts().len()).collect();
        assert_eq!(parts, [1, 1, 1, 1, 1, 2]);
        assert_eq!(compare(&before, &before), []);
    }
}
