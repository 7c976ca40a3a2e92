//! The impl block of an actor, read and checked.

use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ImplItem, ImplItemFn, ItemImpl, Result, ReturnType, Type, TypePath};

use crate::method::{Access, Method, access_of};

/// Names that the handle or the type has besides.
const RESERVED: [&str; 3] = ["stop", "remote", "named"];

/// An actor: its impl block without our attributes, and what other processes call of it.
pub(crate) struct ActorBlock {
    pub(crate) block: ItemImpl,
    pub(crate) name: Ident,
    pub(crate) constructor: Method,
    pub(crate) methods: Vec<Method>,
    pub(crate) stopping: Option<Method>,
}

impl ActorBlock {
    pub(crate) fn read(mut block: ItemImpl) -> Result<ActorBlock> {
        let name = actor_name(&block)?;
        let (mut constructor, mut methods, mut stopping) = (None, Vec::new(), None);
        let functions = block.items.iter_mut().filter_map(|item| match item {
            ImplItem::Fn(function) => Some(function),
            _ => None,
        });
        for function in functions {
            let is_retried = take_retry(function)?;
            let receiver = function.sig.inputs.first().and_then(|first| match first {
                FnArg::Receiver(receiver) => Some(receiver),
                FnArg::Typed(_) => None,
            });
            match (receiver, function.sig.ident.to_string().as_str()) {
                (None, "new") => constructor = Some(read_constructor(function, is_retried)?),
                (Some(receiver), "new") => {
                    return Err(Error::new(receiver.span(), "`new` makes the actor: it takes no `self`"));
                }
                (_, reserved) if RESERVED.contains(&reserved) => {
                    let text = format!("#[cohabit::actor] writes a function `{reserved}`: rename this one");
                    return Err(Error::new(function.sig.ident.span(), text));
                }
                (Some(receiver), "stopping") => {
                    access_of(receiver)?;
                    stopping = Some(read_stopping(function, is_retried)?);
                }
                (Some(receiver), _) => {
                    methods.push(Method::read(function, access_of(receiver)?, is_retried)?);
                }
                (None, _) if is_retried => return Err(not_retried(function)),
                // A function that only this process calls.
                (None, _) => {}
            }
        }
        let constructor = constructor.ok_or_else(|| {
            let text = "an actor needs a constructor: add `fn new(...) -> Self` or `async fn new(...) -> \
                        cohabit::Result<Self>`";
            Error::new(block.self_ty.span(), text)
        })?;
        Ok(ActorBlock { block, name, constructor, methods, stopping })
    }
}

fn actor_name(block: &ItemImpl) -> Result<Ident> {
    if let Some((path, _)) = &block.trait_ {
        let text =
            "an actor is an impl block of a type itself: write `impl Counter`, not `impl ... for Counter`";
        return Err(Error::new(path.span(), text));
    }
    if !block.generics.params.is_empty() || block.generics.where_clause.is_some() {
        let text = "an actor cannot be generic, because other processes find its code by its name: write one actor \
                    for each type";
        return Err(Error::new(block.generics.span(), text));
    }
    let single = match &*block.self_ty {
        Type::Path(TypePath { qself: None, path, .. }) => path.get_ident(),
        _ => None,
    };
    single.cloned().ok_or_else(|| {
        let text = "an actor is a type of this module, by its plain name: write `impl Counter`";
        Error::new(block.self_ty.span(), text)
    })
}

/// Takes `#[retry]` away, which no compiler knows.
fn take_retry(function: &mut ImplItemFn) -> Result<bool> {
    let before = function.attrs.len();
    if let Some(retry) = function.attrs.iter().find(|it| it.path().is_ident("retry")) {
        let text =
            "`#[retry]` has no value: the call is sent again until an incarnation of the actor answers it";
        retry.meta.require_path_only().map_err(|error| Error::new(error.span(), text))?;
    }
    function.attrs.retain(|it| !it.path().is_ident("retry"));
    Ok(function.attrs.len() < before)
}

fn not_retried(function: &ImplItemFn) -> Error {
    let text = "#[retry] is for methods that other processes call: remove it here";
    Error::new(function.sig.ident.span(), text)
}

fn read_constructor(function: &ImplItemFn, is_retried: bool) -> Result<Method> {
    if is_retried {
        return Err(not_retried(function));
    }
    if matches!(function.sig.output, ReturnType::Default) {
        let text = "`new` makes the actor: write `-> Self` or `-> cohabit::Result<Self>`";
        return Err(Error::new(function.sig.ident.span(), text));
    }
    Method::read(function, Access::Constructor, false)
}

fn read_stopping(function: &ImplItemFn, is_retried: bool) -> Result<Method> {
    if is_retried {
        return Err(not_retried(function));
    }
    let method = Method::read(function, Access::Exclusive, false)?;
    match method.function.values().0.first() {
        None => Ok(method),
        Some(value) => {
            let text = "`stopping` is called when the process is to end: it takes `&mut self` and at most `&Context`";
            Err(Error::new(value.span(), text))
        }
    }
}
