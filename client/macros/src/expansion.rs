//! What `#[cohabit::actor]` writes: the impl block as it was, a handle, and an entry of the registry.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use crate::actor::ActorBlock;
use crate::method::{Access, Method, MethodOutput, Parameter};
use crate::options::Options;

pub(crate) fn expand(options: &Options, actor: ActorBlock) -> TokenStream {
    let ActorBlock { block, name, constructor, methods, stopping } = &actor;
    let handle = format_ident!("{name}Handle");
    let handle_struct = handle_struct(name, &handle, constructor);
    let handle_methods = (0_u32..).zip(methods).map(|(index, method)| handle_method(index, method));
    let constructors = constructors(name, &handle, constructor);
    let registration = registration(options, name, &handle, constructor, methods, stopping.as_ref());
    let visibility = &constructor.visibility;
    quote! {
        #block
        #handle_struct
        impl #handle {
            #(#handle_methods)*

            /// Stops the actor, and waits until its process has ended.
            ///
            /// # Errors
            /// [`cohabit::Error::Refused`] if this program runs in no application.
            #[allow(dead_code)]
            #visibility async fn stop(&self) -> ::cohabit::Result<()> {
                self.actor.stop().await
            }
        }
        #constructors
        #registration
    }
}

fn handle_struct(name: &Ident, handle: &Ident, constructor: &Method) -> TokenStream {
    let visibility = &constructor.visibility;
    let docs = format!(
        "A handle of an actor [`{name}`]. It can be cloned, and passed in arguments and values of calls; when \
         the last one is dropped, the actor ends, unless it is detached."
    );
    quote! {
        #[doc = #docs]
        #[derive(Clone, Debug)]
        #visibility struct #handle {
            actor: ::cohabit::private::ActorPointer<#name>,
        }

        impl ::cohabit::private::serde::Serialize for #handle {
            fn serialize<S: ::cohabit::private::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                ::cohabit::private::serde::Serialize::serialize(&self.actor, serializer)
            }
        }

        impl<'de> ::cohabit::private::serde::Deserialize<'de> for #handle {
            fn deserialize<D: ::cohabit::private::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                let actor = ::cohabit::private::serde::Deserialize::deserialize(deserializer)?;
                ::core::result::Result::Ok(Self { actor })
            }
        }
    }
}

/// A method of the handle.
fn handle_method(index: u32, method: &Method) -> TokenStream {
    let Method { name, visibility, docs, .. } = method;
    let (names, types) = method.values();
    let (MethodOutput::Value(value) | MethodOutput::Result(value)) = &method.output;
    let access = match method.access {
        Access::Constructor | Access::Exclusive => quote!(Exclusive),
        Access::Shared => quote!(Shared),
    };
    let on_restart = if method.is_retried { quote!(Retry) } else { quote!(Fail) };
    quote! {
        #(#docs)*
        #[allow(dead_code)]
        #visibility fn #name(&self, #(#names: #types),*) -> ::cohabit::Call<#value> {
            self.actor.call(
                #index,
                ::cohabit::private::MethodAccess::#access,
                ::cohabit::private::OnRestart::#on_restart,
                (#(#names,)*),
            )
        }
    }
}

fn constructors(name: &Ident, handle: &Ident, constructor: &Method) -> TokenStream {
    let visibility = &constructor.visibility;
    let (names, types) = constructor.values();
    quote! {
        impl #name {
            /// An actor in a process of its own, to be created with these arguments of its constructor.
            #[allow(dead_code, clippy::too_many_arguments)]
            #visibility fn remote(#(#names: #types),*) -> ::cohabit::ActorBuilder<#name> {
                ::cohabit::ActorBuilder::new((#(#names,)*))
            }

            /// A handle of the live actor with this name.
            ///
            /// # Errors
            /// [`cohabit::Error::NotFound`] if there is none.
            #[allow(dead_code)]
            #visibility async fn named(name: &str) -> ::cohabit::Result<#handle> {
                ::cohabit::private::find::<#name>(name).await
            }
        }
    }
}

fn registration(
    options: &Options,
    name: &Ident,
    handle: &Ident,
    constructor: &Method,
    methods: &[Method],
    stopping: Option<&Method>,
) -> TokenStream {
    let text = name.to_string();
    let options = options_value(options);
    let construct = construct_function(name, constructor);
    let entries = methods.iter().map(|method| method_entry(name, method));
    let stopping = match stopping {
        Some(method) => stopping_function(name, method),
        None => quote!(::core::option::Option::None),
    };
    quote! {
        const _: () = {
            static ENTRY: ::cohabit::private::RegisteredActor = ::cohabit::private::RegisteredActor {
                module: ::core::module_path!(),
                name: #text,
                place: ::core::concat!(::core::file!(), ":", ::core::line!()),
                construct: #construct,
                methods: &[#(#entries),*],
                stopping: #stopping,
            };

            impl ::cohabit::private::RemoteActor for #name {
                type Handle = #handle;
                const OPTIONS: ::cohabit::private::ActorOptions = #options;
                fn entry() -> &'static ::cohabit::private::RegisteredActor {
                    &ENTRY
                }
                fn handle(actor: ::cohabit::private::ActorPointer<Self>) -> #handle {
                    #handle { actor }
                }
            }

            ::cohabit::private::inventory::submit! { ::cohabit::private::Registration(&ENTRY) }
        };
    }
}

fn options_value(options: &Options) -> TokenStream {
    let Options { gpus, gpu_memory, cpus, memory, restarts, concurrency, enforced, exclusive } = options;
    let gpu_memory = match gpu_memory {
        Some(bytes) => quote!(::core::option::Option::Some(#bytes)),
        None => quote!(::core::option::Option::None),
    };
    let concurrency = match concurrency {
        Some(most) => quote!(#most),
        None => quote!(::cohabit::private::DEFAULT_CONCURRENCY),
    };
    quote! {
        ::cohabit::private::ActorOptions {
            gpus: #gpus,
            gpu_memory: #gpu_memory,
            cpus: #cpus,
            memory: #memory,
            restarts: #restarts,
            concurrency: #concurrency,
            enforced: #enforced,
            exclusive: #exclusive,
        }
    }
}

/// Takes the values apart that a caller gave.
fn decoding(method: &Method) -> TokenStream {
    let (names, types) = method.values();
    match names.is_empty() {
        true => quote!(::cohabit::private::decode_arguments::<()>(arguments)?;),
        false => quote! {
            let (#(#names,)*): (#(#types,)*) = ::cohabit::private::decode_arguments(arguments)?;
        },
    }
}

/// The arguments of the user's function, where the context has this expression.
fn arguments(method: &Method, context: &TokenStream) -> Vec<TokenStream> {
    let argument = |parameter: &Parameter| match parameter {
        Parameter::Context => context.clone(),
        Parameter::Value(name, _) => quote!(#name),
    };
    method.parameters.iter().map(argument).collect()
}

fn awaiting(method: &Method) -> Option<TokenStream> {
    method.is_async.then(|| quote!(.await))
}

fn construct_function(name: &Ident, method: &Method) -> TokenStream {
    let (decoding, awaiting) = (decoding(method), awaiting(method));
    let arguments = arguments(method, &quote!(&context));
    let end = match method.output {
        MethodOutput::Value(_) => quote!(constructed),
        MethodOutput::Result(_) => quote!(constructed_or_failed),
    };
    quote! {
        |arguments, context| {
            #decoding
            ::core::result::Result::Ok(::std::boxed::Box::pin(async move {
                let actor = #name::new(#(#arguments),*)#awaiting;
                ::cohabit::private::#end(actor, context)
            }))
        }
    }
}

/// A call of the user's method, on what the instance gives.
fn method_call(name: &Ident, method: &Method) -> TokenStream {
    let function = &method.name;
    let awaiting = awaiting(method);
    let arguments = arguments(method, &quote!(instance.context()));
    match method.access {
        Access::Shared => quote! {
            let actor = instance.shared::<#name>();
            let value = #name::#function(&actor, #(#arguments),*)#awaiting;
        },
        Access::Constructor | Access::Exclusive => quote! {
            let mut actor = instance.exclusive::<#name>();
            let value = #name::#function(&mut actor, #(#arguments),*)#awaiting;
        },
    }
}

fn method_entry(name: &Ident, method: &Method) -> TokenStream {
    let text = method.name.to_string();
    let (decoding, call) = (decoding(method), method_call(name, method));
    let end = match method.output {
        MethodOutput::Value(_) => quote!(returned),
        MethodOutput::Result(_) => quote!(returned_or_failed),
    };
    quote! {
        ::cohabit::private::MethodEntry {
            name: #text,
            run: |instance, arguments| {
                #decoding
                ::core::result::Result::Ok(::std::boxed::Box::pin(async move {
                    #call
                    ::cohabit::private::#end(value)
                }))
            },
        }
    }
}

fn stopping_function(name: &Ident, method: &Method) -> TokenStream {
    let call = method_call(name, method);
    let end = match method.output {
        MethodOutput::Value(_) => quote!(::core::result::Result::Ok(value)),
        MethodOutput::Result(_) => quote!(value.map_err(::cohabit::Error::from)),
    };
    quote! {
        ::core::option::Option::Some(|instance| {
            ::std::boxed::Box::pin(async move {
                #call
                #end
            })
        })
    }
}
