//! The structure of a crate as its source tells it: which file uses what from which other file.
//!
//! [`Crate::read`] parses the files of a crate, [`Crate::arrows`] resolves every path in them to the file
//! that defines what it names, through re-exports, and [`circles`] finds files that use each other. Unit
//! tests are left out. A method call is no arrow: it does not say where the method lies.
//! [`Crate::without_callers`] finds public items that no other crate uses, and [`Crate::blocking_calls`]
//! finds calls that block in async code.
//!
//! `integration/tests/architecture.rs` holds the workspace to these; `cargo run -p cohabit-structure --
//! CRATE` prints them for one crate.

mod blocking;
mod callers;
mod calls;
mod circles;
mod module;
mod references;
mod resolve;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

pub use blocking::{BlockingCall, BlockingFunctions, UsedCrates};
pub use circles::{Circle, circles};
pub use module::{Definition, Module, Visibility};

/// Which file uses which names of which other file; paths are relative to the crate's `src`.
pub type Arrows = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

/// The parsed source of one crate.
#[derive(Debug)]
pub struct Crate {
    /// Modules by their path from the root, which is empty.
    modules: BTreeMap<Vec<String>, Module>,
}

impl Crate {
    /// Parses the crate whose root file this is, and every module that it declares.
    ///
    /// # Errors
    /// If a file cannot be read or is not Rust.
    pub fn read(root: &Path) -> io::Result<Crate> {
        let mut modules = BTreeMap::new();
        module::read_tree(root, &mut modules)?;
        Ok(Crate { modules })
    }

    /// Every file's uses of other files.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (path, module) in &self.modules {
            for reference in &module.references {
                let Some(found) = resolve::definer(&self.modules, path, reference) else { continue };
                if found.file != module.file {
                    let name = reference.join("::");
                    arrows.entry((module.file.clone(), found.file.clone())).or_default().insert(name);
                }
            }
        }
        arrows
    }

    /// Every call in async code that blocks its thread, given the functions of the crates that it uses.
    pub fn blocking_calls(&self, used: &UsedCrates<'_>) -> BTreeSet<BlockingCall> {
        blocking::CallGraph { modules: &self.modules, used }.blocking_calls()
    }

    /// Every function, and whether it blocks the thread of its caller.
    pub fn blocking_functions(&self, used: &UsedCrates<'_>) -> BlockingFunctions {
        blocking::CallGraph { modules: &self.modules, used }.functions_by_name()
    }

    /// Every item that is visible outside its module.
    pub fn definitions(&self) -> impl Iterator<Item = (&Module, &Definition)> {
        let visible = |it: &&Definition| it.visibility != Visibility::Private;
        self.modules.values().flat_map(move |module| {
            module.definitions.iter().filter(visible).map(move |definition| (module, definition))
        })
    }
}
