//! The actors and tasks of the program: every process of it counts the same ones, with the same numbers.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use cohabit_application_core::TaskClass;

use crate::instance::{MethodEntry, RegisteredActor};
use crate::origin::{Origin, Registered};
use crate::task::RegisteredTask;

/// Registers an actor.
pub struct ActorRegistration(pub &'static RegisteredActor);

/// Registers a task.
pub struct TaskRegistration(pub &'static RegisteredTask);

inventory::collect!(ActorRegistration);
inventory::collect!(TaskRegistration);

/// All of one kind, by module and name.
#[derive(Debug)]
pub(crate) struct Registry<E: Registered> {
    entries: Vec<&'static E>,
}

/// All actors of the program, with numbers for their methods.
#[derive(Debug)]
pub(crate) struct ActorRegistry {
    actors: Registry<RegisteredActor>,
    /// The number of the first method of each, which all methods of the program share.
    first_methods: Vec<u32>,
}

/// All tasks of the program, with the runners that they need.
#[derive(Debug)]
pub(crate) struct TaskRegistry {
    tasks: Registry<RegisteredTask>,
    classes: Vec<Result<TaskClass, String>>,
}

/// Finds two of one name, before anything else runs.
///
/// # Panics
/// If there are.
pub(crate) fn check() {
    let _checked = (ActorRegistry::get(), TaskRegistry::get());
}

impl<E: Registered> Registry<E> {
    fn of(entries: impl Iterator<Item = &'static E>) -> Result<Registry<E>, String> {
        let mut sorted: BTreeMap<(&str, &str), &E> = BTreeMap::new();
        for entry in entries {
            let Origin { module, name, place } = entry.origin();
            if let Some(other) = sorted.insert((module, name), entry) {
                let (plural, other) = (E::PLURAL, other.origin().place);
                return Err(format!(
                    "two {plural} are named {module}::{name}, at {other} and at {place}: rename one of them"
                ));
            }
        }
        Ok(Registry { entries: sorted.into_values().collect() })
    }

    /// The number of this one.
    ///
    /// # Panics
    /// If it is not registered, as every one is.
    pub(crate) fn number_of(&self, entry: &E) -> u32 {
        let key = |entry: &E| (entry.origin().module, entry.origin().name);
        let found = self.entries.binary_search_by(|other| key(other).cmp(&key(entry)));
        found.expect("everything with an attribute is registered") as u32
    }

    pub(crate) fn entry(&self, number: u32) -> Option<&'static E> {
        self.entries.get(number as usize).copied()
    }
}

impl TaskRegistry {
    /// That of this program.
    ///
    /// # Panics
    /// If two tasks have one name, which [`check`] finds before anything else runs.
    pub(crate) fn get() -> &'static TaskRegistry {
        static REGISTRY: OnceLock<TaskRegistry> = OnceLock::new();
        let found = || inventory::iter::<TaskRegistration>().map(|registration| registration.0);
        REGISTRY.get_or_init(|| TaskRegistry::of(found()).unwrap_or_else(|text| panic!("{text}")))
    }

    fn of(entries: impl Iterator<Item = &'static RegisteredTask>) -> Result<TaskRegistry, String> {
        let tasks = Registry::of(entries)?;
        let classes = tasks.entries.iter().map(|task| task.options.class()).collect();
        Ok(TaskRegistry { tasks, classes })
    }

    /// The number of this task.
    ///
    /// # Panics
    /// If it is not registered, as every one is.
    pub(crate) fn number_of(&self, entry: &RegisteredTask) -> u32 {
        self.tasks.number_of(entry)
    }

    pub(crate) fn entry(&self, number: u32) -> Option<&'static RegisteredTask> {
        self.tasks.entry(number)
    }

    /// The runners that run a task as its attribute says.
    ///
    /// # Errors
    /// In words, if no job can claim what it says.
    pub(crate) fn class_of(&self, number: u32) -> Result<TaskClass, String> {
        self.classes[number as usize].clone()
    }
}

impl ActorRegistry {
    /// That of this program.
    ///
    /// # Panics
    /// If two actors have one name, which [`check`] finds before anything else runs.
    pub(crate) fn get() -> &'static ActorRegistry {
        static REGISTRY: OnceLock<ActorRegistry> = OnceLock::new();
        let found = || inventory::iter::<ActorRegistration>().map(|registration| registration.0);
        REGISTRY.get_or_init(|| ActorRegistry::of(found()).unwrap_or_else(|text| panic!("{text}")))
    }

    fn of(entries: impl Iterator<Item = &'static RegisteredActor>) -> Result<ActorRegistry, String> {
        let actors = Registry::of(entries)?;
        let first_methods = actors.entries.iter().scan(0, |next, entry| {
            let first = *next;
            *next += entry.methods.len() as u32;
            Some(first)
        });
        Ok(ActorRegistry { first_methods: first_methods.collect(), actors })
    }

    /// The number of this type.
    ///
    /// # Panics
    /// If it is not registered, as every one is.
    pub(crate) fn kind_of(&self, entry: &RegisteredActor) -> u32 {
        self.actors.number_of(entry)
    }

    /// The number of the first method of this type.
    pub(crate) fn first_method(&self, kind: u32) -> u32 {
        self.first_methods[kind as usize]
    }

    pub(crate) fn entry(&self, kind: u32) -> Option<&'static RegisteredActor> {
        self.actors.entry(kind)
    }

    /// The type and the method with this number.
    pub(crate) fn method(&self, number: u32) -> Option<(&'static RegisteredActor, &'static MethodEntry)> {
        let kind = self.first_methods.partition_point(|first| *first <= number).checked_sub(1)?;
        let entry = self.entry(kind as u32)?;
        Some((entry, entry.methods.get((number - self.first_methods[kind]) as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Claims, TaskOptions};
    use cohabit_application_core::{CallError, OnTaskError};

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
            origin: Origin { module, name, place },
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
            let named = |number| registry.method(number).map(|(entry, it)| (entry.origin.name, it.name));
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

    #[test]
    fn tasks_are_counted_and_checked_as_actors_are() {
        const fn task(name: &'static str, place: &'static str) -> RegisteredTask {
            let options = TaskOptions { claims: Claims::NONE, retries: 3, on_error: OnTaskError::Fail };
            let origin = Origin { module: "app", name, place };
            RegisteredTask { origin, options, run: |_, _| Err(CallError::Cancelled) }
        }
        static SQUARE: RegisteredTask = task("square", "main.rs:5");
        static CUBE: RegisteredTask = task("cube", "main.rs:9");
        static OTHER: RegisteredTask = task("cube", "other.rs:1");
        let registry = TaskRegistry::of([&SQUARE, &CUBE].into_iter()).unwrap();
        assert_eq!([&CUBE, &SQUARE].map(|it| registry.number_of(it)), [0, 1]);
        let refused = TaskRegistry::of([&CUBE, &SQUARE, &OTHER].into_iter()).unwrap_err();
        let expected = "two tasks are named app::cube, at main.rs:9 and at other.rs:1: rename one of them";
        assert_eq!(refused, expected);
    }
}
