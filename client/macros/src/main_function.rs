//! `#[cohabit::main]`: the program's `main`, run by the process that has this role.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Result};

use crate::application_options::ApplicationOptions;

const UNKNOWN_OPTION: &str = "`main` has no such option: use name, max_gpus, object_memory";

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = ApplicationOptions::parse(attribute, UNKNOWN_OPTION)?;
    let function: ItemFn = syn::parse2(item)?;
    check(&function)?;
    let name = match &options.name {
        Some(name) => quote!(#name),
        None => quote! {
            match ::core::option_env!("CARGO_BIN_NAME") {
                ::core::option::Option::Some(name) => name,
                ::core::option::Option::None => ::core::env!("CARGO_PKG_NAME"),
            }
        },
    };
    let entry = options.entry(&name);
    let call = match function.sig.asyncness {
        Some(_) => quote!(main().await),
        None => quote!(main()),
    };
    Ok(quote! {
        fn main() -> ::std::process::ExitCode {
            #function
            #entry
            ::cohabit::private::run(ENTRY, || {
                ::std::boxed::Box::pin(async { ::cohabit::private::MainReturn::code(#call) })
            })
        }
    })
}

fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    match () {
        () if signature.ident != "main" => {
            Err(Error::new(signature.ident.span(), "this belongs on the program's `main` function"))
        }
        () if !signature.inputs.is_empty() => Err(Error::new(
            signature.inputs.span(),
            "`main` takes no arguments: read those of the program from `std::env::args()`",
        )),
        () if !signature.generics.params.is_empty() => {
            Err(Error::new(signature.generics.span(), "`main` cannot be generic"))
        }
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_main_is_refused() {
        let refused =
            |attribute: TokenStream, item: TokenStream| expand(attribute, item).unwrap_err().to_string();
        assert!(
            refused(
                quote!(),
                quote!(
                    async fn start() {}
                )
            )
            .contains("`main` function")
        );
        assert!(
            refused(
                quote!(),
                quote!(
                    async fn main(n: u32) {}
                )
            )
            .contains("std::env::args")
        );
        assert!(
            refused(
                quote!(gpus = 1),
                quote!(
                    async fn main() {}
                )
            )
            .contains("use name, max_gpus, object_memory")
        );
        assert!(
            refused(
                quote!(name = ""),
                quote!(
                    async fn main() {}
                )
            )
            .contains("1 to 128 bytes")
        );
        assert!(
            refused(
                quote!(name),
                quote!(
                    async fn main() {}
                )
            )
            .contains("name = \"search\"")
        );
        expand(
            quote!(name = "a", max_gpus = 2, object_memory = "2G"),
            quote!(
                fn main() {}
            ),
        )
        .unwrap();
    }
}
