//! Calls that block a thread, written directly in async code.
//!
//! Async code is the body of an `async fn`, an async block or an async closure. A closure that is passed to
//! a function which runs it on another thread is not async code; nor is a function that async code calls,
//! because a call does not say what the function does.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Expr, ExprAsync, ExprCall, ExprClosure, ExprMethodCall, ImplItemFn, Item, ItemFn, Local, Macro, Pat,
};

/// Functions that run a closure on another thread.
const OTHER_THREADS: [&str; 4] = ["blocking", "spawn_blocking", "spawn", "within"];

/// What blocks, as paths from the root of a crate.
const BLOCKING: [&str; 6] = [
    "std::fs",
    "std::process::Command",
    "procfs",
    "std::thread::sleep",
    "futures::executor::block_on",
    "rusqlite",
];

/// Methods of `std::path::Path` that ask the file system.
const PATH_METHODS: [&str; 5] = ["exists", "is_dir", "is_file", "read_dir", "canonicalize"];

/// A call that blocks in async code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockingCall {
    /// The function that holds it.
    pub function: String,
    /// What is called, as the source names it.
    pub call: String,
}

/// Adds the blocking calls in an item's async code, given the imports of its module.
pub(crate) fn collect(item: &Item, imports: &BTreeMap<String, Vec<String>>, found: &mut Vec<BlockingCall>) {
    let mut finder =
        Finder { imports, found, function: String::new(), is_async: false, passed: BTreeSet::new() };
    finder.visit_item(item);
}

struct Finder<'a> {
    imports: &'a BTreeMap<String, Vec<String>>,
    found: &'a mut Vec<BlockingCall>,
    function: String,
    is_async: bool,
    /// Variables of the function that are passed to [`OTHER_THREADS`].
    passed: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        let is_async = item.sig.asyncness.is_some();
        self.enter(
            item.sig.ident.to_string(),
            is_async,
            |it| it.visit_block(&item.block),
            |it| {
                it.visit_block(&item.block);
            },
        );
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        let is_async = item.sig.asyncness.is_some();
        self.enter(
            item.sig.ident.to_string(),
            is_async,
            |it| it.visit_block(&item.block),
            |it| {
                it.visit_block(&item.block);
            },
        );
    }

    fn visit_expr_async(&mut self, block: &'ast ExprAsync) {
        self.within(true, |it| visit::visit_expr_async(it, block));
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        let is_async = closure.asyncness.is_some() || self.is_async;
        self.within(is_async, |it| visit::visit_expr_closure(it, closure));
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let elsewhere =
            matches!(&local.pat, Pat::Ident(name) if self.passed.contains(&name.ident.to_string()));
        let is_closure = local.init.as_ref().is_some_and(|init| matches!(*init.expr, Expr::Closure(_)));
        let is_async = self.is_async && !(elsewhere && is_closure);
        self.within(is_async, |it| visit::visit_local(it, local));
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let name = if let Expr::Path(path) = &*call.func { path.path.segments.last() } else { None };
        let name = name.map(|it| it.ident.to_string());
        self.visit_expr(&call.func);
        let elsewhere = name.is_some_and(|it| OTHER_THREADS.contains(&it.as_str()));
        call.args.iter().for_each(|argument| self.argument(argument, elsewhere));
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        if self.is_async && PATH_METHODS.contains(&method.as_str()) && call.args.is_empty() {
            self.add(format!(".{method}()"));
        }
        self.visit_expr(&call.receiver);
        let elsewhere = OTHER_THREADS.contains(&method.as_str());
        call.args.iter().for_each(|argument| self.argument(argument, elsewhere));
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let segments: Vec<String> = path.path.segments.iter().map(|it| it.ident.to_string()).collect();
        self.path(&segments);
    }

    /// Only paths can be seen in a macro call, so a closure in it counts as async code.
    fn visit_macro(&mut self, call: &'ast Macro) {
        if self.is_async {
            self.tokens(&call.tokens);
        }
    }
}

impl Finder<'_> {
    fn enter(
        &mut self,
        name: String,
        is_async: bool,
        scan: impl FnOnce(&mut PassedVariables),
        visit: impl FnOnce(&mut Self),
    ) {
        let mut variables = PassedVariables(BTreeSet::new());
        scan(&mut variables);
        let before =
            (std::mem::replace(&mut self.function, name), std::mem::replace(&mut self.passed, variables.0));
        self.within(is_async, visit);
        (self.function, self.passed) = before;
    }

    fn within(&mut self, is_async: bool, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_async, is_async);
        visit(self);
        self.is_async = before;
    }

    /// An argument; a closure may run elsewhere.
    fn argument(&mut self, argument: &Expr, elsewhere: bool) {
        if !elsewhere {
            return self.visit_expr(argument);
        }
        if let Expr::Closure(closure) = argument {
            self.within(closure.asyncness.is_some(), |it| visit::visit_expr_closure(it, closure));
        } else if !matches!(argument, Expr::Path(_)) {
            self.visit_expr(argument);
        }
    }

    fn path(&mut self, segments: &[String]) {
        let Some((first, rest)) = segments.split_first() else { return };
        let full = match self.imports.get(first) {
            Some(import) => [import.as_slice(), rest].concat().join("::"),
            None => segments.join("::"),
        };
        let blocks = |it: &&str| full == **it || full.starts_with(&format!("{it}::"));
        if self.is_async && BLOCKING.iter().any(blocks) {
            self.add(segments.join("::"));
        }
    }

    fn tokens(&mut self, tokens: &TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens.clone() {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.path(&std::mem::take(&mut path));
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.path(&std::mem::take(&mut path));
                    colons = 0;
                    self.tokens(&group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.path(&std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.path(&path);
    }

    fn add(&mut self, call: String) {
        self.found.push(BlockingCall { function: self.function.clone(), call });
    }
}

/// Finds the variables that are passed to [`OTHER_THREADS`].
struct PassedVariables(BTreeSet<String>);

impl<'ast> Visit<'ast> for PassedVariables {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func
            && path
                .path
                .segments
                .last()
                .is_some_and(|it| OTHER_THREADS.contains(&it.ident.to_string().as_str()))
        {
            self.note(call.args.iter());
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if OTHER_THREADS.contains(&call.method.to_string().as_str()) {
            self.note(call.args.iter());
        }
        visit::visit_expr_method_call(self, call);
    }
}

impl PassedVariables {
    fn note<'a>(&mut self, arguments: impl Iterator<Item = &'a Expr>) {
        for argument in arguments {
            if let Expr::Path(path) = argument
                && let Some(name) = path.path.get_ident()
            {
                self.0.insert(name.to_string());
            }
        }
    }
}
