//! Public items of a crate that no other crate uses.

use std::collections::BTreeSet;

use crate::Crate;
use crate::module::{Module, Visibility};

impl Crate {
    /// The public items of this crate, and the public methods of its types as `Type::method`, that none of
    /// these crates uses. `name` is what they call this crate in paths: `cohabit_actor`.
    ///
    /// A method counts as used where a method of its name is called in a module that names this crate at
    /// all, because the source does not say on which type a method is called. Items and methods for unit
    /// tests are left out.
    pub fn without_callers(&self, name: &str, callers: &[Crate]) -> BTreeSet<String> {
        let modules = || callers.iter().flat_map(|it| it.modules.values()).filter(|it| names(it, name));
        let items: BTreeSet<&str> = modules()
            .flat_map(|module| &module.references)
            .filter(|path| path.first().is_some_and(|it| it == name))
            .filter_map(|path| path.get(1).map(String::as_str))
            .collect();
        let methods: BTreeSet<&str> =
            modules().flat_map(|module| &module.method_calls).map(String::as_str).collect();
        let unused_items = self
            .definitions()
            .filter(|(_, it)| it.visibility == Visibility::Public && !items.contains(it.name.as_str()))
            .map(|(_, it)| it.name.clone());
        let unused_methods = self
            .modules
            .values()
            .flat_map(|module| &module.methods)
            .filter(|(_, method)| !methods.contains(method.as_str()))
            .map(|(owner, method)| format!("{owner}::{method}"));
        unused_items.chain(unused_methods).collect()
    }
}

fn names(module: &Module, name: &str) -> bool {
    module.references.iter().any(|path| path.first().is_some_and(|it| it == name))
}
