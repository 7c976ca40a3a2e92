//! `#[cohabit::main]`: the program's `main`, run by the process that has this role.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, ItemFn, Lit, LitStr, Meta, Result, Token};

use crate::options::{bytes, whole};

/// The longest name of an application, in bytes.
const LONGEST_NAME: usize = 128;

#[derive(Default)]
struct MainOptions {
    name: Option<LitStr>,
    max_gpus: Option<u32>,
    object_memory: Option<u64>,
}

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = MainOptions::parse(attribute)?;
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
    let max_gpus = match options.max_gpus {
        Some(most) => quote!(::core::option::Option::Some(#most)),
        None => quote!(::core::option::Option::None),
    };
    let object_memory = match options.object_memory {
        Some(bytes) => quote!(#bytes),
        None => quote!(::cohabit::private::DEFAULT_OBJECT_MEMORY),
    };
    let call = match function.sig.asyncness {
        Some(_) => quote!(main().await),
        None => quote!(main()),
    };
    Ok(quote! {
        fn main() -> ::std::process::ExitCode {
            #function
            const ENTRY: ::cohabit::private::MainEntry = ::cohabit::private::MainEntry {
                name: #name,
                max_gpus: #max_gpus,
                object_memory: #object_memory,
            };
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

impl MainOptions {
    fn parse(attribute: TokenStream) -> Result<MainOptions> {
        let mut options = MainOptions::default();
        for meta in Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute)? {
            match meta.path().get_ident().map(ToString::to_string).as_deref() {
                Some("name") => options.name = Some(name(&meta)?),
                Some("max_gpus") => options.max_gpus = Some(whole(&meta, 0)?),
                Some("object_memory") => options.object_memory = Some(bytes(&meta)?),
                Some(_) | None => {
                    let text = "`main` has no such option: use name, max_gpus, object_memory";
                    return Err(Error::new(meta.span(), text));
                }
            }
        }
        Ok(options)
    }
}

fn name(meta: &Meta) -> Result<LitStr> {
    let wrong = |span: Span| {
        let text = format!(
            "the name of an application is a text of 1 to {LONGEST_NAME} bytes without control characters: write \
             `name = \"search\"`"
        );
        Error::new(span, text)
    };
    let Meta::NameValue(pair) = meta else { return Err(wrong(meta.span())) };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else {
        return Err(wrong(pair.value.span()));
    };
    let value = text.value();
    match value.is_empty() || value.len() > LONGEST_NAME || value.contains(char::is_control) {
        true => Err(wrong(text.span())),
        false => Ok(text.clone()),
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
