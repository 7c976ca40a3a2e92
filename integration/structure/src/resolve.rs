//! From a path to the module that defines what it names, through imports and re-exports.

use std::collections::BTreeMap;

use crate::module::Module;

type Modules = BTreeMap<Vec<String>, Module>;

/// Longer chains of re-exports are not followed: they would be a circle of imports.
const LONGEST_CHAIN: usize = 16;

/// The module that defines what `reference` names in the module at `here`; none if it is not of this crate,
/// or names a module and nothing in it.
pub(crate) fn definer<'a>(modules: &'a Modules, here: &[String], reference: &[String]) -> Option<&'a Module> {
    find(modules, here, reference, LONGEST_CHAIN)
}

fn find<'a>(modules: &'a Modules, here: &[String], path: &[String], steps: usize) -> Option<&'a Module> {
    let steps = steps.checked_sub(1)?;
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => inside(modules, &[], rest, steps),
        "self" => inside(modules, here, rest, steps),
        "super" => inside(modules, here.split_last()?.1, rest, steps),
        _ => inside(modules, here, path, steps),
    }
}

/// What `path` names as seen from outside the module at `here`.
fn inside<'a>(modules: &'a Modules, here: &[String], path: &[String], steps: usize) -> Option<&'a Module> {
    let (first, rest) = path.split_first()?;
    if first == "super" {
        return inside(modules, here.split_last()?.1, rest, steps);
    }
    let module = modules.get(here)?;
    let child = [here, std::slice::from_ref(first)].concat();
    if modules.contains_key(&child) {
        return inside(modules, &child, rest, steps);
    }
    if module.definitions.iter().any(|it| it.name == *first) {
        return Some(module);
    }
    if let Some(import) = module.imports.get(first) {
        // `use name::…` of another crate leads nowhere here, and must not lead back to itself.
        let target = [import.as_slice(), rest].concat();
        return if import.first() == Some(first) && import.len() == 1 {
            None
        } else {
            find(modules, here, &target, steps)
        };
    }
    module.globs.iter().find_map(|glob| {
        let target = [glob.as_slice(), path].concat();
        find(modules, here, &target, steps.checked_sub(1)?)
    })
}
