//! `#[cohabit::test]`: a test that is the `main` of an application in the process of the tests.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Result, Visibility};

use crate::application_options::ApplicationOptions;

const UNKNOWN_OPTION: &str = "a test has no such option: use max_gpus, object_memory";

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = ApplicationOptions::parse(attribute, UNKNOWN_OPTION)?;
    if let Some(name) = &options.name {
        return Err(Error::new(name.span(), "a test has the name of its function: leave `name` out"));
    }
    let mut function: ItemFn = syn::parse2(item)?;
    // Those of the test that is written around it.
    let attributes = std::mem::take(&mut function.attrs);
    let visibility = std::mem::replace(&mut function.vis, Visibility::Inherited);
    let sig = &function.sig;
    if !sig.inputs.is_empty() {
        return Err(Error::new(sig.inputs.span(), "a test takes no arguments"));
    }
    if !sig.generics.params.is_empty() {
        return Err(Error::new(sig.generics.span(), "a test cannot be generic"));
    }
    let name = &sig.ident;
    let entry = options.entry(&quote!(::core::stringify!(#name)));
    let call = match sig.asyncness {
        Some(_) => quote!(#name().await),
        None => quote!(#name()),
    };
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        #visibility fn #name() {
            #function
            #entry
            ::cohabit::private::run_test(ENTRY, || {
                ::std::boxed::Box::pin(async { ::cohabit::private::TestReturn::outcome(#call) })
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_test_is_refused() {
        let refused =
            |attribute: TokenStream, item: TokenStream| expand(attribute, item).unwrap_err().to_string();
        let test = quote!(
            async fn it_counts() {}
        );
        assert!(refused(quote!(name = "a"), test.clone()).contains("leave `name` out"));
        assert!(refused(quote!(gpus = 1), test.clone()).contains("use max_gpus, object_memory"));
        let with_argument = quote!(
            async fn it_counts(n: u32) {}
        );
        assert!(refused(quote!(), with_argument).contains("no arguments"));
        let generic = quote!(
            fn it_counts<T>() {}
        );
        assert!(refused(quote!(), generic).contains("generic"));
        expand(quote!(max_gpus = 2, object_memory = "2G"), test).unwrap();
    }
}
