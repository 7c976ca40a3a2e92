//! Calls in async code that block a thread, directly or by way of functions of the same crate.
//!
//! A path is resolved to the function that it names. A method call counts if every method of that name in
//! the crate and in those that it uses blocks, because the source does not say on which type a method is
//! called.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::calls::{CallName, Function};
use crate::module::Module;
use crate::resolve;

/// What blocks, as paths from the root of a crate.
const BLOCKING: [&str; 7] = [
    "std::fs",
    "std::os::unix::net::UnixStream::connect",
    "std::process::Command",
    "procfs",
    "std::thread::sleep",
    "futures::executor::block_on",
    "rusqlite::Connection",
];

/// Methods of `std::path::Path` that ask the file system.
const PATH_METHODS: [&str; 5] = ["exists", "is_dir", "is_file", "read_dir", "canonicalize"];

/// Methods that types of the standard library have too: a call of one says nothing about a method of ours.
const COMMON_METHODS: [&str; 14] = [
    "open", "read", "write", "create", "close", "remove", "take", "next", "get", "insert", "new", "drop",
    "send", "status",
];

/// A call in async code that blocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockingCall {
    /// The file.
    pub file: PathBuf,
    /// The function that holds the async code.
    pub function: String,
    /// What is called, as the source names it.
    pub call: String,
}

/// The functions of a crate, by the type that they belong to and their name: whether each blocks.
pub type BlockingFunctions = BTreeMap<(Option<String>, String), bool>;

/// The functions of the crates that a crate uses, by the crates' names as paths have them.
pub type UsedCrates<'a> = BTreeMap<String, &'a BlockingFunctions>;

/// A function: its module's path, the type that it belongs to, its name.
type FunctionKey<'a> = (&'a [String], Option<&'a str>, &'a str);

/// The functions of a crate.
pub(crate) struct CallGraph<'a> {
    pub(crate) modules: &'a BTreeMap<Vec<String>, Module>,
    pub(crate) used: &'a UsedCrates<'a>,
}

impl CallGraph<'_> {
    /// Every call in async code that blocks.
    pub(crate) fn blocking_calls(&self) -> BTreeSet<BlockingCall> {
        let blocking = self.blocking();
        self.functions().flat_map(|(here, function)| self.calls_of(here, function, &blocking)).collect()
    }

    /// Every function, and whether it blocks. Of several with the same name all must.
    pub(crate) fn functions_by_name(&self) -> BlockingFunctions {
        let blocking = self.blocking();
        let mut functions = BlockingFunctions::new();
        for (here, function) in self.functions() {
            let blocks = blocking.contains(&key(here, function));
            *functions.entry((function.owner.clone(), function.name.clone())).or_insert(true) &= blocks;
        }
        functions
    }

    /// The functions that block the thread of their caller.
    fn blocking(&self) -> BTreeSet<FunctionKey<'_>> {
        let mut blocking: BTreeSet<FunctionKey<'_>> = BTreeSet::new();
        loop {
            let before = blocking.len();
            let found: Vec<FunctionKey<'_>> = self
                .functions()
                .filter(|(here, function)| {
                    function.in_sync.iter().any(|call| self.blocks(here, function, call, &blocking))
                })
                .map(|(here, function)| key(here, function))
                .collect();
            blocking.extend(found);
            if blocking.len() == before {
                return blocking;
            }
        }
    }

    fn calls_of(
        &self,
        here: &[String],
        function: &Function,
        blocking: &BTreeSet<FunctionKey<'_>>,
    ) -> Vec<BlockingCall> {
        let blocks = |call: &&CallName| self.blocks(here, function, call, blocking);
        let row = |call: &CallName| BlockingCall {
            file: self.modules[here].file.clone(),
            function: function.name.clone(),
            call: match call {
                CallName::Path(path) => path.join("::"),
                CallName::Method(method) => format!(".{method}"),
            },
        };
        function.in_async.iter().filter(blocks).map(row).collect()
    }

    fn functions(&self) -> impl Iterator<Item = (&[String], &Function)> {
        let of_module = |(path, module)| Module::functions(module).map(move |it| (Vec::as_slice(path), it));
        self.modules.iter().flat_map(of_module)
    }

    fn blocks(
        &self,
        here: &[String],
        function: &Function,
        call: &CallName,
        blocking: &BTreeSet<FunctionKey<'_>>,
    ) -> bool {
        match call {
            CallName::Method(name) => self.method_blocks(name, blocking),
            CallName::Path(path) => {
                let full = full_path(&self.modules[here].imports, path);
                is_listed(&full)
                    || self.used_blocks(&full)
                    || self.path_blocks(here, function, path, blocking)
            }
        }
    }

    fn method_blocks(&self, name: &str, blocking: &BTreeSet<FunctionKey<'_>>) -> bool {
        if PATH_METHODS.contains(&name) {
            return true;
        }
        let is_method = |it: &(&[String], &Function)| it.1.owner.is_some() && it.1.name == name;
        let own = self.functions().filter(is_method);
        let own = own.map(|(here, function)| blocking.contains(&key(here, function)));
        let theirs = self.used.values().copied().flatten();
        let theirs = theirs.filter(|((owner, method), _)| owner.is_some() && method == name);
        let mut methods = own.chain(theirs.map(|(_, blocks)| *blocks)).peekable();
        !COMMON_METHODS.contains(&name) && methods.peek().is_some() && methods.all(|blocks| blocks)
    }

    /// Whether a path leads to a function of another crate that blocks.
    fn used_blocks(&self, full: &[String]) -> bool {
        let Some(functions) = full.first().and_then(|name| self.used.get(name)) else { return false };
        let Some((name, qualifier)) = full.split_last() else { return false };
        let owner = qualifier.last().filter(|word| word.starts_with(char::is_uppercase));
        functions.get(&(owner.cloned(), name.clone())).is_some_and(|blocks| *blocks)
    }

    fn path_blocks(
        &self,
        here: &[String],
        function: &Function,
        path: &[String],
        blocking: &BTreeSet<FunctionKey<'_>>,
    ) -> bool {
        let Some((name, qualifier)) = path.split_last() else { return false };
        let owner = match qualifier.last().map(String::as_str) {
            Some("Self") => function.owner.as_deref(),
            Some(word) if word.starts_with(char::is_uppercase) => Some(word),
            Some(_) | None => None,
        };
        if let Some(owner) = owner {
            return blocking.iter().any(|it| it.1 == Some(owner) && it.2 == name);
        }
        let Some(module) = resolve::definer(self.modules, here, path) else { return false };
        let in_module =
            |it: &&FunctionKey<'_>| self.modules.get(it.0).is_some_and(|at| std::ptr::eq(at, module));
        blocking.iter().filter(in_module).any(|it| it.1.is_none() && it.2 == name)
    }
}

fn key<'a>(here: &'a [String], function: &'a Function) -> FunctionKey<'a> {
    (here, function.owner.as_deref(), &function.name)
}

/// The path with its first name replaced by what it was imported from.
fn full_path(imports: &BTreeMap<String, Vec<String>>, path: &[String]) -> Vec<String> {
    let Some((first, rest)) = path.split_first() else { return Vec::new() };
    match imports.get(first) {
        Some(import) => [import.as_slice(), rest].concat(),
        None => path.to_vec(),
    }
}

/// Whether the path is one of [`BLOCKING`].
fn is_listed(full: &[String]) -> bool {
    let full = full.join("::");
    BLOCKING.iter().any(|it| full == *it || full.starts_with(&format!("{it}::")))
}
