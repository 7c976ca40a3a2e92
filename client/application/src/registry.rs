//! The actors of the program: every process of it counts the same types and methods.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::instance::{MethodEntry, RegisteredActor};

/// Registers an actor.
pub struct Registration(pub &'static RegisteredActor);

inventory::collect!(Registration);

/// All actors of the program, by module and name.
#[derive(Debug)]
pub(crate) struct ActorRegistry {
    entries: Vec<&'static RegisteredActor>,
    /// The number of the first method of each, which all methods of the program share.
    first_methods: Vec<u32>,
}

impl ActorRegistry {
    /// That of this program.
    ///
    /// # Panics
    /// If two actors have one name, which `check` finds before anything else runs.
    pub(crate) fn get() -> &'static ActorRegistry {
        static REGISTRY: OnceLock<ActorRegistry> = OnceLock::new();
        let found = || inventory::iter::<Registration>().map(|registration| registration.0);
        REGISTRY.get_or_init(|| ActorRegistry::of(found()).unwrap_or_else(|text| panic!("{text}")))
    }

    fn of(entries: impl Iterator<Item = &'static RegisteredActor>) -> Result<ActorRegistry, String> {
        let mut sorted: BTreeMap<(&str, &str), &RegisteredActor> = BTreeMap::new();
        for entry in entries {
            if let Some(other) = sorted.insert((entry.module, entry.name), entry) {
                let (module, name) = (entry.module, entry.name);
                return Err(format!(
                    "two actors are named {module}::{name}, at {} and at {}: rename one of them",
                    other.place, entry.place
                ));
            }
        }
        let entries: Vec<_> = sorted.into_values().collect();
        let first_methods = entries.iter().scan(0, |next, entry| {
            let first = *next;
            *next += entry.methods.len() as u32;
            Some(first)
        });
        Ok(ActorRegistry { first_methods: first_methods.collect(), entries })
    }

    /// The number of this type.
    ///
    /// # Panics
    /// If it is not registered, as every one is.
    pub(crate) fn kind_of(&self, entry: &RegisteredActor) -> u32 {
        let key = (entry.module, entry.name);
        let found = self.entries.binary_search_by(|other| (other.module, other.name).cmp(&key));
        found.expect("every actor is registered") as u32
    }

    /// The number of the first method of this type.
    pub(crate) fn first_method(&self, kind: u32) -> u32 {
        self.first_methods[kind as usize]
    }

    pub(crate) fn entry(&self, kind: u32) -> Option<&'static RegisteredActor> {
        self.entries.get(kind as usize).copied()
    }

    /// The type and the method with this number.
    pub(crate) fn method(&self, number: u32) -> Option<(&'static RegisteredActor, &'static MethodEntry)> {
        let kind = self.first_methods.partition_point(|first| *first <= number).checked_sub(1)?;
        let entry = self.entries.get(kind)?;
        Some((entry, entry.methods.get((number - self.first_methods[kind]) as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohabit_application_core::CallError;

    const fn method(name: &'static str) -> MethodEntry {
        MethodEntry { name, run: |_, _| Err(CallError::Cancelled) }
    }

    const fn entry(
        module: &'static str,
        name: &'static str,
        place: &'static str,
        methods: &'static [MethodEntry],
    ) -> RegisteredActor {
        RegisteredActor {
            module,
            name,
            place,
            construct: |_, _| Err(CallError::Cancelled),
            methods,
            stopping: None,
        }
    }

    static LIST: RegisteredActor =
        entry("app::lists", "List", "lists.rs:3", &[method("push"), method("all")]);
    static NONE: RegisteredActor = entry("app::lists", "Idle", "lists.rs:9", &[]);
    static COUNTER: RegisteredActor = entry("app", "Counter", "main.rs:5", &[method("add")]);
    static OTHER: RegisteredActor = entry("app", "Counter", "main.rs:50", &[]);

    #[test]
    fn numbers_do_not_depend_on_the_order_of_registration() {
        for order in [[&LIST, &NONE, &COUNTER], [&COUNTER, &LIST, &NONE]] {
            let registry = ActorRegistry::of(order.into_iter()).unwrap();
            assert_eq!([&COUNTER, &NONE, &LIST].map(|it| registry.kind_of(it)), [0, 1, 2]);
            let named = |number| registry.method(number).map(|(entry, it)| (entry.name, it.name));
            assert_eq!(named(0), Some(("Counter", "add")));
            assert_eq!(named(registry.first_method(2) + 1), Some(("List", "all")));
            assert_eq!(named(3), None);
        }
    }

    #[test]
    fn two_actors_of_one_name_are_refused_with_both_places() {
        let refused = ActorRegistry::of([&COUNTER, &LIST, &OTHER].into_iter()).unwrap_err();
        let expected =
            "two actors are named app::Counter, at main.rs:5 and at main.rs:50: rename one of them";
        assert_eq!(refused, expected);
    }
}
