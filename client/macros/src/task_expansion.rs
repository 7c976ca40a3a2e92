//! What `#[cohabit::task]` writes: the function as it was, a struct of its name that calls it elsewhere, and
//! an entry of the registry.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, ItemFn, Result};

use crate::function::{FunctionKind, RemoteFunction};
use crate::options::TaskAttribute;
use crate::snippets::{arguments, awaiting, claims_value, decoding, end_of, origin, parameters, passed};

pub(crate) fn expand(options: &TaskAttribute, item: &ItemFn) -> Result<TokenStream> {
    let function = RemoteFunction::read(&item.attrs, &item.vis, &item.sig, FunctionKind::Task)?;
    let remote = remote(&function);
    let registration = registration(options, &function);
    Ok(quote! {
        #item
        #remote
        #registration
    })
}

/// The struct, which is a type and leaves the name of the function to the function.
fn remote(function: &RemoteFunction) -> TokenStream {
    let RemoteFunction { name, visibility, docs, .. } = function;
    let (parameters, passed) = (parameters(function), passed(function));
    let value = function.value();
    let call = if function.is_stream { quote!(StreamCall) } else { quote!(TaskCall) };
    let about = format!("Runs the task [`{name}()`] in other processes, with [`{name}::remote`].");
    quote! {
        #[doc = #about]
        #[allow(non_camel_case_types, dead_code)]
        #visibility struct #name {}

        impl #name {
            #(#docs)*
            #[allow(dead_code, clippy::too_many_arguments)]
            #visibility fn remote(#parameters) -> ::cohabit::#call<#value> {
                ::cohabit::#call::new::<#name, _>(#passed)
            }
        }
    }
}

fn registration(options: &TaskAttribute, function: &RemoteFunction) -> TokenStream {
    let name = &function.name;
    let (origin, run) = (origin(name), run_function(function));
    let TaskAttribute { claims, retries, retry_errors } = options;
    let claims = claims_value(claims);
    let on_error = if *retry_errors { quote!(Retry) } else { quote!(Fail) };
    quote! {
        const _: () = {
            static ENTRY: ::cohabit::private::RegisteredTask = ::cohabit::private::RegisteredTask {
                origin: #origin,
                options: ::cohabit::private::TaskOptions {
                    claims: #claims,
                    retries: #retries,
                    on_error: ::cohabit::private::OnTaskError::#on_error,
                },
                run: #run,
            };

            impl ::cohabit::private::RemoteTask for #name {
                fn entry() -> &'static ::cohabit::private::RegisteredTask {
                    &ENTRY
                }
            }

            ::cohabit::private::inventory::submit! { ::cohabit::private::TaskRegistration(&ENTRY) }
        };
    }
}

fn run_function(function: &RemoteFunction) -> TokenStream {
    let name = &function.name;
    let (decoding, awaiting, end) = (decoding(function), awaiting(function), end_of(function));
    // A parameter may have the name of the function, or that of the context: these are names of their own.
    let called = Ident::new("called", Span::mixed_site());
    let context = Ident::new("context", Span::mixed_site());
    let arguments = arguments(function, &quote!(&#context));
    let keep_context =
        function.has_context().then(|| quote!(let #context = ::core::clone::Clone::clone(#context);));
    quote! {
        |arguments, #context| {
            let #called = #name;
            #keep_context
            #decoding
            ::core::result::Result::Ok(::std::boxed::Box::pin(async move {
                ::cohabit::private::#end(#called(#(#arguments),*)#awaiting).await
            }))
        }
    }
}
