//! One function of an actor: who may call it, with what, and what comes back.

use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, ImplItemFn, Pat, PathArguments, Receiver, ReceiverKind,
    Result, ReturnType, Safety, Signature, Type, TypePath, Visibility,
};

/// The most arguments of a method: as many elements as serde knows tuples of.
const MOST_ARGUMENTS: usize = 16;

/// A function that other processes call, by way of a handle or as the constructor.
pub(crate) struct Method {
    pub(crate) name: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) is_async: bool,
    pub(crate) access: Access,
    pub(crate) is_retried: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) output: MethodOutput,
}

/// What it does with the actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It makes the actor.
    Constructor,
    /// `&self`.
    Shared,
    /// `&mut self`.
    Exclusive,
}

/// A parameter after `self`.
pub(crate) enum Parameter {
    /// The `&Context` of the process.
    Context,
    /// A value that the caller gives.
    Value(Ident, Box<Type>),
}

/// What a function returns.
pub(crate) enum MethodOutput {
    /// This type.
    Value(Box<Type>),
    /// A `Result` whose first type this is.
    Result(Box<Type>),
}

impl Method {
    pub(crate) fn read(function: &ImplItemFn, access: Access, is_retried: bool) -> Result<Method> {
        let signature = &function.sig;
        check_signature(function)?;
        let parameters: Vec<Parameter> =
            signature.inputs.iter().filter_map(parameter).collect::<Result<_>>()?;
        let values = parameters.iter().filter(|it| matches!(it, Parameter::Value(..))).count();
        if values > MOST_ARGUMENTS {
            let text = format!("a method has at most {MOST_ARGUMENTS} arguments: put some into a struct");
            return Err(Error::new(signature.inputs.span(), text));
        }
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        Ok(Method {
            name: signature.ident.clone(),
            visibility: function.vis.clone(),
            docs: function.attrs.iter().filter(is_doc).cloned().collect(),
            is_async: signature.asyncness.is_some(),
            access,
            is_retried,
            parameters,
            output: output(signature, access)?,
        })
    }

    /// Names and types of the values that the caller gives.
    pub(crate) fn values(&self) -> (Vec<&Ident>, Vec<&Type>) {
        let values = self.parameters.iter().filter_map(|it| match it {
            Parameter::Context => None,
            Parameter::Value(name, of) => Some((name, &**of)),
        });
        values.unzip()
    }
}

/// What the receiver of a method allows.
pub(crate) fn access_of(receiver: &Receiver) -> Result<Access> {
    let stays = "an actor stays in its process: take `&self` or `&mut self`";
    match &receiver.kind {
        ReceiverKind::Reference(_, _, Some(_)) => Ok(Access::Exclusive),
        ReceiverKind::Reference(_, _, None) => Ok(Access::Shared),
        ReceiverKind::Value => Err(Error::new(receiver.span(), format!("`self` is taken by value; {stays}"))),
        _ => Err(Error::new(receiver.span(), format!("`self` has a type here; {stays}"))),
    }
}

fn check_signature(function: &ImplItemFn) -> Result<()> {
    let signature = &function.sig;
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let text = "a function that other processes call cannot be generic: name the types, or put it into an impl \
                    block without #[cohabit::actor]";
        return Err(Error::new(signature.generics.span(), text));
    }
    if let Safety::Unsafe(keyword) = &signature.safety {
        return Err(Error::new(keyword.span(), "a function that other processes call cannot be unsafe"));
    }
    if let Some(condition) = function.attrs.iter().find(|it| it.path().is_ident("cfg")) {
        let text = "put #[cfg] on the whole impl block: all processes have to count the same methods";
        return Err(Error::new(condition.span(), text));
    }
    Ok(())
}

fn parameter(argument: &FnArg) -> Option<Result<Parameter>> {
    let FnArg::Typed(argument) = argument else { return None };
    let name = match &*argument.pat {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => name.ident.clone(),
        other => {
            let text = "give the argument a name here, and take it apart inside of the function";
            return Some(Err(Error::new(other.span(), text)));
        }
    };
    Some(match &*argument.ty {
        Type::Reference(reference) if is_context(&reference.elem) && reference.mutability.is_none() => {
            Ok(Parameter::Context)
        }
        Type::Reference(reference) => {
            let text = "arguments travel between processes: take an owned value, such as String for &str. A function \
                        that only this process calls goes into an impl block without #[cohabit::actor]";
            Err(Error::new(reference.span(), text))
        }
        Type::ImplTrait(it) => {
            Err(Error::new(it.span(), "name the type: other processes send this argument"))
        }
        of => no_self(of).map(|()| Parameter::Value(name, Box::new(of.clone()))),
    })
}

fn is_context(of: &Type) -> bool {
    let Type::Path(TypePath { path, qself: None, .. }) = of else { return false };
    path.segments.last().is_some_and(|it| it.ident == "Context" && it.arguments.is_none())
}

fn output(signature: &Signature, access: Access) -> Result<MethodOutput> {
    let of = match &signature.output {
        ReturnType::Default => return Ok(MethodOutput::Value(Box::new(syn::parse_quote!(())))),
        ReturnType::Type(_, of) => of,
    };
    if let Type::ImplTrait(it) = &**of {
        return Err(Error::new(it.span(), "name the type: other processes get this value"));
    }
    if access == Access::Constructor {
        return Ok(match first_of_result(of)? {
            Some(value) => MethodOutput::Result(Box::new(value.clone())),
            None => MethodOutput::Value(of.clone()),
        });
    }
    no_self(of)?;
    Ok(match first_of_result(of)? {
        Some(value) => MethodOutput::Result(Box::new(value.clone())),
        None => MethodOutput::Value(of.clone()),
    })
}

/// The type of the value, if this is a `Result`.
fn first_of_result(of: &Type) -> Result<Option<&Type>> {
    let Type::Path(TypePath { path, qself: None, .. }) = of else { return Ok(None) };
    let Some(last) = path.segments.last().filter(|it| it.ident == "Result") else { return Ok(None) };
    let first = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.first(),
        PathArguments::None | PathArguments::Parenthesized(_) => None,
    };
    match first {
        Some(GenericArgument::Type(value)) => Ok(Some(value)),
        Some(_) | None => {
            Err(Error::new(of.span(), "write the type of the value: `Result<()>` if there is none"))
        }
    }
}

/// The handle has methods with the same types, where `Self` would mean the handle.
fn no_self(of: &Type) -> Result<()> {
    fn mentions(tokens: proc_macro2::TokenStream) -> bool {
        tokens.into_iter().any(|it| match it {
            proc_macro2::TokenTree::Ident(ident) => ident == "Self",
            proc_macro2::TokenTree::Group(group) => mentions(group.stream()),
            proc_macro2::TokenTree::Punct(_) | proc_macro2::TokenTree::Literal(_) => false,
        })
    }
    match mentions(quote::ToTokens::to_token_stream(of)) {
        true => Err(Error::new(of.span(), "write the name of the type instead of `Self`")),
        false => Ok(()),
    }
}
