//! What the attributes of `main` and of tests say of their applications.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Meta, Result, Token};

use crate::options::{bytes, whole};

/// The longest name of an application, in bytes.
const LONGEST_NAME: usize = 128;

/// What an attribute says of an application.
#[derive(Default)]
pub(crate) struct ApplicationOptions {
    pub(crate) name: Option<LitStr>,
    max_gpus: Option<u32>,
    object_memory: Option<u64>,
}

impl ApplicationOptions {
    /// `unknown` is what to say of another option.
    ///
    /// # Errors
    /// If it says something else, or something that cannot be.
    pub(crate) fn parse(attribute: TokenStream, unknown: &str) -> Result<ApplicationOptions> {
        let mut options = ApplicationOptions::default();
        for meta in Punctuated::<Meta, Token![,]>::parse_terminated.parse2(attribute)? {
            match meta.path().get_ident().map(ToString::to_string).as_deref() {
                Some("name") => options.name = Some(name(&meta)?),
                Some("max_gpus") => options.max_gpus = Some(whole(&meta, 0)?),
                Some("object_memory") => options.object_memory = Some(bytes(&meta)?),
                Some(_) | None => return Err(Error::new(meta.span(), unknown)),
            }
        }
        Ok(options)
    }

    /// The constant that says all of it, with this name.
    pub(crate) fn entry(&self, name: &TokenStream) -> TokenStream {
        let max_gpus = match self.max_gpus {
            Some(most) => quote!(::core::option::Option::Some(#most)),
            None => quote!(::core::option::Option::None),
        };
        let object_memory = match self.object_memory {
            Some(bytes) => quote!(#bytes),
            None => quote!(::cohabit::private::DEFAULT_OBJECT_MEMORY),
        };
        quote! {
            const ENTRY: ::cohabit::private::MainEntry = ::cohabit::private::MainEntry {
                name: #name,
                max_gpus: #max_gpus,
                object_memory: #object_memory,
            };
        }
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
