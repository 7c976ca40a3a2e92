//! Pieces of code that both attributes write.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Ident;

use crate::function::{FunctionOutput, Parameter, RemoteFunction};
use crate::options::ClaimOptions;

/// Where something is registered from.
pub(crate) fn origin(name: &Ident) -> TokenStream {
    let name = name.to_string();
    quote! {
        ::cohabit::private::Origin {
            module: ::core::module_path!(),
            name: #name,
            place: ::core::concat!(::core::file!(), ":", ::core::line!()),
        }
    }
}

pub(crate) fn claims_value(claims: &ClaimOptions) -> TokenStream {
    let ClaimOptions { gpus, gpu_memory, cpus, memory, enforced, exclusive } = claims;
    let gpu_memory = match gpu_memory {
        Some(bytes) => quote!(::core::option::Option::Some(#bytes)),
        None => quote!(::core::option::Option::None),
    };
    quote! {
        ::cohabit::private::Claims {
            gpus: #gpus,
            gpu_memory: #gpu_memory,
            cpus: #cpus,
            memory: #memory,
            enforced: #enforced,
            exclusive: #exclusive,
        }
    }
}

/// Parameters of a function that makes a call: each takes a value or a reference.
pub(crate) fn parameters(function: &RemoteFunction) -> TokenStream {
    let (names, types) = function.values();
    quote!(#(#names: impl ::core::convert::Into<::cohabit::Arg<#types>>),*)
}

/// The tuple of arguments that these parameters make.
pub(crate) fn passed(function: &RemoteFunction) -> TokenStream {
    let (names, types) = function.values();
    quote!((#(::core::convert::Into::<::cohabit::Arg<#types>>::into(#names),)*))
}

/// Takes the values apart that a caller gave.
pub(crate) fn decoding(function: &RemoteFunction) -> TokenStream {
    let (names, types) = function.values();
    match names.is_empty() {
        true => quote!(::cohabit::private::decode_arguments::<()>(arguments)?;),
        false => quote! {
            let (#(#names,)*) =
                ::cohabit::private::decode_arguments::<(#(::cohabit::Arg<#types>,)*)>(arguments)?;
        },
    }
}

/// The arguments of the user's function, where the context has this expression.
pub(crate) fn arguments(function: &RemoteFunction, context: &TokenStream) -> Vec<TokenStream> {
    let argument = |parameter: &Parameter| match parameter {
        Parameter::Context => context.clone(),
        Parameter::Value(name, _) => quote!(#name),
    };
    function.parameters.iter().map(argument).collect()
}

pub(crate) fn awaiting(function: &RemoteFunction) -> Option<TokenStream> {
    function.is_async.then(|| quote!(.await))
}

/// The function that makes the end of a call of what a method or a task returned.
pub(crate) fn end_of(function: &RemoteFunction) -> TokenStream {
    if function.is_stream {
        return quote!(send_items);
    }
    match function.output {
        FunctionOutput::Value(_) => quote!(returned),
        FunctionOutput::Result(_) => quote!(returned_or_failed),
    }
}
