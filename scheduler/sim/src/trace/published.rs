//! Published traces, for tests. They are no part of the repository: a test without them says so and passes.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::{ReadOptions, Throughputs, Trace, read};

/// A published file, if it lies in `shared/data` above the repository.
#[expect(clippy::print_stderr, reason = "a test that is skipped has to say so")]
pub(crate) fn published(file: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().map(|folder| folder.join("shared/data").join(file)).find(|it| it.exists());
    if found.is_none() {
        eprintln!("skipped: there is no shared/data/{file} above {}", here.display());
    }
    found
}

/// A published trace, if it is there.
pub(crate) fn read_published(file: &str, throughputs: Option<Throughputs>) -> Option<Trace> {
    let file = File::open(published(file)?).unwrap();
    Some(read(file, &ReadOptions { throughputs, ..ReadOptions::default() }).unwrap())
}
