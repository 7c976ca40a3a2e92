//! What counts as a blocking call in async code, on a small crate of its own.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;

use cohabit_structure::{Crate, UsedCrates};

/// The blocking calls of a crate with this source, as `function call`.
fn found(source: &str) -> Vec<String> {
    found_beside(source, &UsedCrates::new())
}

/// The same for a crate that uses others.
fn found_beside(source: &str, used: &UsedCrates<'_>) -> Vec<String> {
    let calls = parse(source).blocking_calls(used);
    calls.into_iter().map(|it| format!("{} {}", it.function, it.call)).collect()
}

fn parse(source: &str) -> Crate {
    let folder = std::env::temp_dir().join(format!("cohabit-structure-{}", std::process::id()));
    let folder = folder.join(format!("{:p}", source.as_ptr()));
    fs::create_dir_all(&folder).unwrap();
    let root = folder.join("lib.rs");
    fs::write(&root, source).unwrap();
    let read = Crate::read(&root).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    read
}

#[test]
fn a_direct_call_is_found_through_imports_and_in_async_blocks() {
    let source = "use std::fs; use std::fs::File;
        async fn one() { fs::read(\"a\"); }
        fn two() { let later = async move { File::open(\"a\") }; }
        async fn three() { tokio::fs::read(\"a\").await; }
        fn four() { fs::read(\"a\"); }";
    assert_eq!(found(source), ["one fs::read", "two File::open"]);
}

#[test]
fn a_closure_that_runs_on_another_thread_may_block() {
    let source = "use std::fs;
        async fn one() { blocking(|| fs::read(\"a\")).await; }
        async fn two() { let work = move || fs::read(\"a\"); spawn_blocking(work).await; }
        async fn three() { [1].map(|_| fs::read(\"a\")); }";
    assert_eq!(found(source), ["three fs::read"]);
}

#[test]
fn functions_and_methods_of_the_crate_are_followed() {
    let source = "
        mod files { pub fn load() { std::fs::read(\"a\"); } }
        struct Store;
        impl Store {
            fn load_all(&self) { files::load(); }
            fn name(&self) {}
        }
        async fn one() { files::load(); }
        async fn two(store: Store) { store.load_all(); store.name(); }";
    assert_eq!(found(source), ["one files::load", "two .load_all"]);
}

#[test]
fn functions_and_methods_of_other_crates_are_followed() {
    let library = "
        pub fn load() { std::fs::read(\"a\"); }
        pub fn count() {}
        pub struct Store;
        impl Store {
            pub fn at() -> Store { load(); Store }
            pub fn load_all(&self) { load(); }
            pub fn flush(&self) {}
        }";
    let functions = parse(library).blocking_functions(&UsedCrates::new());
    let used = UsedCrates::from([("library".to_owned(), &functions)]);
    let source = "use library::{Store, count, load};
        struct Own;
        impl Own { fn flush(&self) { load(); } }
        async fn one() { load(); count(); }
        async fn two() { let store = Store::at(); store.load_all(); store.flush(); }
        async fn three() { library::load(); }";
    assert_eq!(
        found_beside(source, &used),
        ["one load", "three library::load", "two .load_all", "two Store::at"]
    );
    assert_eq!(found_beside(source, &UsedCrates::new()), <[&str; 0]>::default());
}
