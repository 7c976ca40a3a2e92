//! The calls that each function makes, told apart by the thread on which they run.
//!
//! Async code is the body of an `async fn`, an async block or an async closure; it runs on an async thread.
//! A closure that is passed to a function of [`OTHER_THREADS`] runs on a thread that may block, and its
//! calls are left out.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprAsync, ExprCall, ExprClosure, ExprMethodCall, ExprPath};
use syn::{ImplItemFn, Item, ItemFn, ItemImpl, Local, Macro, Pat, Type};

/// Functions that run a closure on another thread.
const OTHER_THREADS: [&str; 5] =
    ["blocking", "on_blocking_thread", "spawn_blocking", "spawn", "run_with_timeout"];

/// A function of the crate.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// The type in whose `impl` block it is.
    pub(crate) owner: Option<String>,
    pub(crate) name: String,
    /// Calls in its async code.
    pub(crate) in_async: BTreeSet<CallName>,
    /// Calls outside of async code: they run on the thread of the function's caller.
    pub(crate) in_sync: BTreeSet<CallName>,
}

/// A call as the source names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallName {
    Path(Vec<String>),
    Method(String),
}

/// Adds the functions of an item.
pub(crate) fn collect(item: &Item, functions: &mut Vec<Function>) {
    let mut collector =
        Collector { functions, owner: None, open: Vec::new(), code: Code::Sync, passed: BTreeSet::new() };
    collector.visit_item(item);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Sync,
    Async,
    OtherThread,
}

struct Collector<'a> {
    functions: &'a mut Vec<Function>,
    owner: Option<String>,
    /// The functions around the present place, the innermost last.
    open: Vec<Function>,
    code: Code,
    /// Variables of the innermost function that are passed to [`OTHER_THREADS`].
    passed: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let owner = if let Type::Path(path) = &*block.self_ty { path.path.segments.last() } else { None };
        self.owner = owner.map(|it| it.ident.to_string());
        visit::visit_item_impl(self, block);
        self.owner = None;
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_expr_async(&mut self, block: &'ast ExprAsync) {
        self.in_code(Code::Async, |it| visit::visit_expr_async(it, block));
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        let code = if closure.asyncness.is_some() { Code::Async } else { self.code };
        self.in_code(code, |it| visit::visit_expr_closure(it, closure));
    }

    fn visit_local(&mut self, local: &'ast Local) {
        let is_passed =
            matches!(&local.pat, Pat::Ident(name) if self.passed.contains(&name.ident.to_string()));
        let is_closure = local.init.as_ref().is_some_and(|init| matches!(*init.expr, Expr::Closure(_)));
        let code = if is_passed && is_closure { Code::OtherThread } else { self.code };
        self.in_code(code, |it| visit::visit_local(it, local));
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let path = if let Expr::Path(path) = &*call.func { segments(path) } else { Vec::new() };
        let elsewhere = path.last().is_some_and(|it| OTHER_THREADS.contains(&it.as_str()));
        if path.is_empty() {
            self.visit_expr(&call.func);
        } else {
            self.add(CallName::Path(path));
        }
        call.args.iter().for_each(|argument| self.argument(argument, elsewhere));
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        let elsewhere = OTHER_THREADS.contains(&method.as_str());
        self.add(CallName::Method(method));
        self.visit_expr(&call.receiver);
        call.args.iter().for_each(|argument| self.argument(argument, elsewhere));
    }

    /// A function that is passed by its path. A single name may be a variable and is left out.
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        if path.path.segments.len() > 1 {
            self.add(CallName::Path(segments(path)));
        }
    }

    /// In a macro call only paths can be seen, and no closures.
    fn visit_macro(&mut self, call: &'ast Macro) {
        self.tokens(&call.tokens);
    }
}

impl Collector<'_> {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let mut passed = PassedVariables(BTreeSet::new());
        passed.visit_block(block);
        let outer = std::mem::replace(&mut self.passed, passed.0);
        self.open.push(Function {
            owner: self.owner.clone(),
            name: signature.ident.to_string(),
            in_async: BTreeSet::new(),
            in_sync: BTreeSet::new(),
        });
        let code = if signature.asyncness.is_some() { Code::Async } else { Code::Sync };
        self.in_code(code, |it| it.visit_block(block));
        self.functions.extend(self.open.pop());
        self.passed = outer;
    }

    fn in_code(&mut self, code: Code, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.code, code);
        visit(self);
        self.code = before;
    }

    fn argument(&mut self, argument: &Expr, elsewhere: bool) {
        if !elsewhere {
            return self.visit_expr(argument);
        }
        if let Expr::Closure(closure) = argument {
            let code = if closure.asyncness.is_some() { Code::Async } else { Code::OtherThread };
            self.in_code(code, |it| visit::visit_expr_closure(it, closure));
        } else if !matches!(argument, Expr::Path(_)) {
            self.visit_expr(argument);
        }
    }

    fn tokens(&mut self, tokens: &TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens.clone() {
            match token {
                TokenTree::Ident(word) if colons == 2 => path.push(word.to_string()),
                TokenTree::Ident(word) => {
                    self.end(&mut path);
                    path.push(word.to_string());
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.tokens(&group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => self.end(&mut path),
            }
            colons = 0;
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.add(CallName::Path(std::mem::take(path)));
        }
        path.clear();
    }

    fn add(&mut self, call: CallName) {
        let Some(function) = self.open.last_mut() else { return };
        match self.code {
            Code::Sync => function.in_sync.insert(call),
            Code::Async => function.in_async.insert(call),
            Code::OtherThread => false,
        };
    }
}

fn segments(path: &ExprPath) -> Vec<String> {
    path.path.segments.iter().map(|it| it.ident.to_string()).collect()
}

/// Finds the variables that are passed to [`OTHER_THREADS`].
struct PassedVariables(BTreeSet<String>);

impl<'ast> Visit<'ast> for PassedVariables {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func
            && segments(path).last().is_some_and(|it| OTHER_THREADS.contains(&it.as_str()))
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
