//! The signature of a function that other processes call: with what, and what comes back.

use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Ident, Pat, Path, PathArguments, Result, ReturnType, Safety,
    Signature, Type, TypeParamBound, TypePath, Visibility,
};

/// The most arguments of a function: as many elements as serde knows tuples of.
const MOST_ARGUMENTS: usize = 16;

/// A function that other processes call.
pub(crate) struct RemoteFunction {
    pub(crate) name: Ident,
    pub(crate) visibility: Visibility,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) is_async: bool,
    /// Whether it returns a stream; the output is that of its items then.
    pub(crate) is_stream: bool,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) output: FunctionOutput,
}

/// Where a function stands, which decides what is said of a wrong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// It makes an actor, and may return `Self`.
    Constructor,
    /// In the impl block of an actor, with `self`.
    Method,
    /// Alone in a module.
    Task,
}

/// A parameter after `self`.
pub(crate) enum Parameter {
    /// The `&Context` of the process.
    Context,
    /// A value that the caller gives.
    Value(Ident, Box<Type>),
}

/// What a function returns.
pub(crate) enum FunctionOutput {
    /// This type.
    Value(Box<Type>),
    /// A `Result` whose first type this is.
    Result(Box<Type>),
}

impl RemoteFunction {
    pub(crate) fn read(
        attributes: &[Attribute],
        visibility: &Visibility,
        signature: &Signature,
        kind: FunctionKind,
    ) -> Result<RemoteFunction> {
        check(attributes, signature, kind)?;
        let parameters: Vec<Parameter> =
            signature.inputs.iter().filter_map(|it| parameter(it, kind)).collect::<Result<_>>()?;
        let values = parameters.iter().filter(|it| matches!(it, Parameter::Value(..))).count();
        if values > MOST_ARGUMENTS {
            let text = format!(
                "a function that other processes call has at most {MOST_ARGUMENTS} arguments: put some into a \
                 struct"
            );
            return Err(Error::new(signature.inputs.span(), text));
        }
        let stream = stream_bound(signature).filter(|_| kind == FunctionKind::Task);
        let output = match stream {
            Some(stream) => FunctionOutput::Result(Box::new(value_of_items(stream)?.clone())),
            None => output(signature, kind)?,
        };
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        Ok(RemoteFunction {
            name: signature.ident.clone(),
            visibility: visibility.clone(),
            docs: attributes.iter().filter(is_doc).cloned().collect(),
            is_async: signature.asyncness.is_some(),
            is_stream: stream.is_some(),
            parameters,
            output,
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

    /// The type of the value that its caller gets, or of the items of its stream.
    pub(crate) fn value(&self) -> &Type {
        let (FunctionOutput::Value(value) | FunctionOutput::Result(value)) = &self.output;
        value
    }

    pub(crate) fn has_context(&self) -> bool {
        self.parameters.iter().any(|it| matches!(it, Parameter::Context))
    }
}

impl FunctionKind {
    const fn is_of_actor(self) -> bool {
        match self {
            FunctionKind::Constructor | FunctionKind::Method => true,
            FunctionKind::Task => false,
        }
    }
}

fn check(attributes: &[Attribute], signature: &Signature, kind: FunctionKind) -> Result<()> {
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        let text = match kind.is_of_actor() {
            true => {
                "a function that other processes call cannot be generic: name the types, or put it into an impl \
                 block without #[cohabit::actor]"
            }
            false => {
                "a task cannot be generic, because other processes find it by its name: name the types, and write \
                 one task for each"
            }
        };
        return Err(Error::new(signature.generics.span(), text));
    }
    if let Safety::Unsafe(keyword) = &signature.safety {
        return Err(Error::new(keyword.span(), "a function that other processes call cannot be unsafe"));
    }
    if let Some(condition) = attributes.iter().find(|it| it.path().is_ident("cfg")) {
        let text = match kind.is_of_actor() {
            true => "put #[cfg] on the whole impl block: all processes have to count the same methods",
            false => "put #[cfg] before #[cohabit::task], so that it holds for all that the attribute writes",
        };
        return Err(Error::new(condition.span(), text));
    }
    Ok(())
}

fn parameter(argument: &FnArg, kind: FunctionKind) -> Option<Result<Parameter>> {
    let argument = match argument {
        FnArg::Typed(argument) => argument,
        FnArg::Receiver(_) if kind.is_of_actor() => return None,
        FnArg::Receiver(receiver) => {
            let text = "a task is a function without `self`: give what it needs as arguments, or make the type an \
                        actor with #[cohabit::actor]";
            return Some(Err(Error::new(receiver.span(), text)));
        }
    };
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
        Type::Reference(reference) if is_named(&reference.elem, "Ref") => {
            let text = "take the reference by value: callers give `&` of theirs, or a clone";
            Err(Error::new(reference.span(), text))
        }
        Type::Reference(reference) => {
            let owned = "arguments travel between processes: take an owned value, such as String for &str";
            let text = match kind.is_of_actor() {
                true => format!(
                    "{owned}. A function that only this process calls goes into an impl block without \
                     #[cohabit::actor]"
                ),
                false => owned.to_owned(),
            };
            Err(Error::new(reference.span(), text))
        }
        Type::ImplTrait(it) => {
            Err(Error::new(it.span(), "name the type: other processes send this argument"))
        }
        of if is_named(of, "Arg") => {
            let text = "write the type of the value: callers may give a reference in its place";
            Err(Error::new(of.span(), text))
        }
        of => no_self(of).map(|()| Parameter::Value(name, Box::new(of.clone()))),
    })
}

fn is_context(of: &Type) -> bool {
    let Type::Path(TypePath { path, qself: None, .. }) = of else { return false };
    path.segments.last().is_some_and(|it| it.ident == "Context" && it.arguments.is_none())
}

/// Whether it is a type of this name with parameters.
fn is_named(of: &Type, name: &str) -> bool {
    let Type::Path(TypePath { path, qself: None, .. }) = of else { return false };
    path.segments.last().is_some_and(|it| it.ident == name && !it.arguments.is_none())
}

fn output(signature: &Signature, kind: FunctionKind) -> Result<FunctionOutput> {
    let of = match &signature.output {
        ReturnType::Default => return Ok(FunctionOutput::Value(Box::new(syn::parse_quote!(())))),
        ReturnType::Type(_, of) => of,
    };
    if let Type::ImplTrait(it) = &**of {
        return Err(Error::new(it.span(), "name the type: other processes get this value"));
    }
    if kind != FunctionKind::Constructor {
        no_self(of)?;
    }
    Ok(match first_of_result(of)? {
        Some(value) => FunctionOutput::Result(Box::new(value.clone())),
        None => FunctionOutput::Value(of.clone()),
    })
}

/// The trait in an `impl Stream` that a function returns.
fn stream_bound(signature: &Signature) -> Option<&Path> {
    let ReturnType::Type(_, of) = &signature.output else { return None };
    let Type::ImplTrait(of) = &**of else { return None };
    of.bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(it) if it.path.segments.last()?.ident == "Stream" => Some(&it.path),
        _ => None,
    })
}

/// The type in the results that are the items of a stream.
fn value_of_items(stream: &Path) -> Result<&Type> {
    let wrong = |at: proc_macro2::Span| {
        let text = "the items of a stream are results, for the process that makes them can fail: write `impl \
                    Stream<Item = Result<u64>>`";
        Error::new(at, text)
    };
    let arguments = match stream.segments.last().map(|it| &it.arguments) {
        Some(PathArguments::AngleBracketed(arguments)) => &arguments.args,
        Some(PathArguments::None | PathArguments::Parenthesized(_)) | None => {
            return Err(wrong(stream.span()));
        }
    };
    let item = arguments.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(it) if it.ident == "Item" => Some(&it.ty),
        _ => None,
    });
    let item = item.ok_or_else(|| wrong(stream.span()))?;
    let value = first_of_result(item)?.ok_or_else(|| wrong(item.span()))?;
    no_self(value).map(|()| value)
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
