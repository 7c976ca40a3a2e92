//! What `#[cohabit::actor]` writes: the impl block as it was, a handle, and an entry of the registry.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Ident;

use crate::actor::ActorBlock;
use crate::function::{FunctionOutput, RemoteFunction};
use crate::method::{Access, Method};
use crate::options::ActorAttribute;
use crate::snippets::{arguments, awaiting, claims_value, decoding, end_of, origin, parameters, passed};

pub(crate) fn expand(options: &ActorAttribute, actor: ActorBlock) -> TokenStream {
    let ActorBlock { block, name, constructor, methods, stopping } = &actor;
    let handle = format_ident!("{name}Handle");
    let handle_struct = handle_struct(name, &handle, &constructor.function);
    let handle_methods = (0_u32..).zip(methods).map(|(index, method)| handle_method(index, method));
    let constructor = &constructor.function;
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

fn handle_struct(name: &Ident, handle: &Ident, constructor: &RemoteFunction) -> TokenStream {
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
    let RemoteFunction { name, visibility, docs, .. } = &method.function;
    let (parameters, passed) = (parameters(&method.function), passed(&method.function));
    let value = method.function.value();
    let access = match method.access {
        Access::Constructor | Access::Exclusive => quote!(Exclusive),
        Access::Shared => quote!(Shared),
    };
    let on_restart = if method.is_retried { quote!(Retry) } else { quote!(Fail) };
    quote! {
        #(#docs)*
        #[allow(dead_code)]
        #visibility fn #name(&self, #parameters) -> ::cohabit::Call<#value> {
            self.actor.call(
                #index,
                ::cohabit::private::MethodAccess::#access,
                ::cohabit::private::OnRestart::#on_restart,
                #passed,
            )
        }
    }
}

fn constructors(name: &Ident, handle: &Ident, constructor: &RemoteFunction) -> TokenStream {
    let visibility = &constructor.visibility;
    let (parameters, passed) = (parameters(constructor), passed(constructor));
    quote! {
        impl #name {
            /// An actor in a process of its own, to be created with these arguments of its constructor.
            #[allow(dead_code, clippy::too_many_arguments)]
            #visibility fn remote(#parameters) -> ::cohabit::ActorBuilder<#name> {
                ::cohabit::ActorBuilder::new(#passed)
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
    options: &ActorAttribute,
    name: &Ident,
    handle: &Ident,
    constructor: &RemoteFunction,
    methods: &[Method],
    stopping: Option<&Method>,
) -> TokenStream {
    let origin = origin(name);
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
                origin: #origin,
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

            ::cohabit::private::inventory::submit! { ::cohabit::private::ActorRegistration(&ENTRY) }
        };
    }
}

fn options_value(options: &ActorAttribute) -> TokenStream {
    let ActorAttribute { claims, restarts, concurrency } = options;
    let claims = claims_value(claims);
    let concurrency = match concurrency {
        Some(most) => quote!(#most),
        None => quote!(::cohabit::private::DEFAULT_CONCURRENCY),
    };
    quote! {
        ::cohabit::private::ActorOptions {
            claims: #claims,
            restarts: #restarts,
            concurrency: #concurrency,
        }
    }
}

fn construct_function(name: &Ident, constructor: &RemoteFunction) -> TokenStream {
    let (decoding, awaiting) = (decoding(constructor), awaiting(constructor));
    let arguments = arguments(constructor, &quote!(&context));
    let end = match constructor.output {
        FunctionOutput::Value(_) => quote!(constructed),
        FunctionOutput::Result(_) => quote!(constructed_or_failed),
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
    let function = &method.function.name;
    let awaiting = awaiting(&method.function);
    let arguments = arguments(&method.function, &quote!(instance.context()));
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
    let text = method.function.name.to_string();
    let (decoding, call) = (decoding(&method.function), method_call(name, method));
    let end = end_of(&method.function);
    quote! {
        ::cohabit::private::MethodEntry {
            name: #text,
            run: |instance, arguments| {
                #decoding
                ::core::result::Result::Ok(::std::boxed::Box::pin(async move {
                    #call
                    ::cohabit::private::#end(value).await
                }))
            },
        }
    }
}

fn stopping_function(name: &Ident, method: &Method) -> TokenStream {
    let call = method_call(name, method);
    let end = match method.function.output {
        FunctionOutput::Value(_) => quote!(::core::result::Result::Ok(value)),
        FunctionOutput::Result(_) => quote!(value.map_err(::cohabit::Error::from)),
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
