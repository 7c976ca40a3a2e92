//! The attributes of Cohabit applications: `#[cohabit::actor]`, `#[cohabit::task]`, `#[cohabit::main]`
//! and `#[cohabit::test]`.
//!
//! They are documented, and meant to be used, where the crate `cohabit` exports them. What they write calls
//! only `::cohabit::private`. A program that they refuse gets an error at the place that is wrong, which says
//! what to write instead.
//!
//! ```text
//! #[actor] -> options (the attribute) -> actor (the impl block: checks) -> actor_expansion
//!                                          method (one of its functions)     snippets (what both write)
//! #[task]  -> options                 -> function (a signature: checks) -> task_expansion
//! #[main]  -> application_options -> main_function
//! #[test]  -> application_options -> test_function
//! ```
#![warn(missing_docs)]
#![expect(clippy::wildcard_enum_match_arm, reason = "the enums of syn grow with the language")]

mod actor;
mod actor_expansion;
mod application_options;
mod function;
mod main_function;
mod method;
mod options;
mod snippets;
mod task_expansion;
mod test_function;

use proc_macro::TokenStream;

use crate::actor::ActorBlock;
use crate::options::{ActorAttribute, Options, TaskAttribute};

/// Makes the methods of an impl block callable from other processes; see the documentation of `cohabit`.
#[proc_macro_attribute]
pub fn actor(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = ActorAttribute::parse(attribute.into())
        .and_then(|options| Ok((options, syn::parse(item)?)))
        .and_then(|(options, item)| Ok(actor_expansion::expand(&options, ActorBlock::read(item)?)));
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a function callable in other processes; see the documentation of `cohabit`.
#[proc_macro_attribute]
pub fn task(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = TaskAttribute::parse(attribute.into())
        .and_then(|options| task_expansion::expand(&options, &syn::parse(item)?));
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a program an application; see the documentation of `cohabit`.
#[proc_macro_attribute]
pub fn main(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = main_function::expand(attribute.into(), item.into());
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a test the `main` of an application in its own process; see the documentation of `cohabit`.
#[proc_macro_attribute]
pub fn test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = test_function::expand(attribute.into(), item.into());
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
