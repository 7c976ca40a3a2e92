//! Walks a directory that belongs to somebody who may change it meanwhile: from one open directory to the
//! next, never through a link, in the order of names.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::Dir;

use crate::entry::TransferFailure;
use crate::limits::MOST_ENTRIES;
use crate::path::TransferPath;
use crate::protected::ProtectedPlaces;
use crate::refused::Refused;
use crate::send_error::SendError;
use crate::source::{LastLink, PlacedFile, Source};

/// Passes on all that is in this directory, each directory before what is in it. `held_names` counts the
/// names of all directories that are being walked: they are in memory at once.
pub(crate) fn walk(
    directory: &PlacedFile,
    path: &TransferPath,
    protected: &ProtectedPlaces,
    held_names: &mut u64,
    pass_on: &mut impl FnMut(&TransferPath, &Source) -> Result<(), SendError>,
) -> Result<(), SendError> {
    let listed = directory.open().and_then(|opened| Ok((names(&opened)?, opened)));
    let (names, opened) = match listed {
        Ok(listed) => listed,
        Err(error) if path.names().len() == 0 => return Err(SendError::of_file(path, &error)),
        Err(error) => return pass_on(path, &unreadable(&error)),
    };
    let count = names.len() as u64;
    *held_names += count;
    if *held_names > MOST_ENTRIES {
        return Err(SendError::too_many());
    }
    for name in names {
        // Too deep, or no name.
        let inner = path.join(&name).map_err(|error| SendError::too_large(error.to_string()))?;
        let source = match Source::find(opened.as_fd(), &*name, LastLink::Kept, protected) {
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => unreadable(&error),
            Ok(found) => found,
        };
        pass_on(&inner, &source)?;
        if let Source::Directory(found) = &source {
            walk(found, &inner, protected, held_names, pass_on)?;
        }
    }
    *held_names -= count;
    Ok(())
}

fn unreadable(error: &io::Error) -> Source {
    let why = format!("it cannot be read: {error}");
    Source::Refused(Refused { kind: TransferFailure::Failed, why })
}

/// The names in a directory, in order; one more than may be sent, where there are too many.
fn names(directory: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_owned();
        if !matches!(&*name, b"." | b"..") {
            names.push(name);
        }
        if names.len() as u64 > MOST_ENTRIES {
            break;
        }
    }
    names.sort_unstable();
    Ok(names)
}
