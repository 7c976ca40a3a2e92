//! Every path that an item names, those inside macro calls included.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ExprMethodCall, Item, Macro, Path};

/// Adds the paths of an item, and the names of the methods that it calls.
pub(crate) fn collect(item: &Item, references: &mut Vec<Vec<String>>, methods: &mut BTreeSet<String>) {
    Collector { references, methods }.visit_item(item);
}

struct Collector<'a> {
    references: &'a mut Vec<Vec<String>>,
    methods: &'a mut BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.methods.insert(call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.segments.len() > 1 {
            self.methods.extend(path.segments.last().map(|it| it.ident.to_string()));
        }
        self.references.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// Attributes name nothing of ours but what `serde(with = "…")` quotes.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.tokens(&call.tokens);
    }
}

impl Collector<'_> {
    /// Words joined by `::` are a path.
    fn tokens(&mut self, tokens: &TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut after_dot = false;
        for token in tokens.clone() {
            match token {
                TokenTree::Ident(word) => {
                    if after_dot || colons == 2 {
                        self.methods.insert(word.to_string());
                    }
                    after_dot = false;
                    if colons != 2 {
                        self.end(&mut path);
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Punct(mark) if mark.as_char() == '.' => {
                    self.end(&mut path);
                    (colons, after_dot) = (0, true);
                }
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    colons = 0;
                    self.tokens(&group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.end(&mut path);
                    colons = 0;
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.references.push(std::mem::take(path));
        }
    }
}
