//! The attributes of Cohabit applications: `#[cohabit::actor]` and `#[cohabit::main]`.
//!
//! They are documented, and meant to be used, where the crate `cohabit` exports them. What they write calls
//! only `::cohabit::private`. A program that they refuse gets an error at the place that is wrong, which says
//! what to write instead.
//!
//! ```text
//! #[actor] -> options (the attribute)  -> actor (the impl block: checks) -> expansion
//!                                            method (one function of it)
//! #[main]  -> main_function
//! ```
#![warn(missing_docs)]
#![expect(clippy::wildcard_enum_match_arm, reason = "the enums of syn grow with the language")]

mod actor;
mod expansion;
mod main_function;
mod method;
mod options;

use proc_macro::TokenStream;

/// Makes the methods of an impl block callable from other processes; see the documentation of `cohabit`.
#[proc_macro_attribute]
pub fn actor(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = options::Options::parse(attribute.into())
        .and_then(|options| Ok((options, syn::parse(item)?)))
        .and_then(|(options, item)| Ok(expansion::expand(&options, actor::ActorBlock::read(item)?)));
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Makes a program an application; see the documentation of `cohabit`.
#[proc_macro_attribute]
pub fn main(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = main_function::expand(attribute.into(), item.into());
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
